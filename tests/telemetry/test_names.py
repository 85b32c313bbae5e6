"""Datasets and jobs are named as OpenLineage's naming conventions say."""

from __future__ import annotations

import pytest

from rewindow.app.telemetry.command_facts import Operation, Table
from rewindow.app.telemetry.gather_command_facts import catalog_host
from rewindow.app.telemetry.openlineage_names import Caller, caller_in, dataset_of, job_of, symlink_of
from rewindow.config.target import TargetConfig


@pytest.mark.parametrize(
    ("location", "namespace", "name"),
    [
        ("/data/warehouse/shop/orders", "file", "/data/warehouse/shop/orders"),
        ("file:///data/raw", "file", "/data/raw"),
        ("s3://lake/warehouse/shop/orders", "s3://lake", "warehouse/shop/orders"),
        ("s3a://lake/warehouse/", "s3://lake", "warehouse"),
        ("gs://lake/shop", "gs://lake", "shop"),
        ("abfss://lake@acme.dfs.core.windows.net/shop", "abfss://lake@acme.dfs.core.windows.net", "shop"),
    ],
)
def test_a_table_at_a_path_is_named_by_its_bucket_and_key(location: str, namespace: str, name: str):
    assert dataset_of(Table(location)) == (namespace, name)


def test_a_governed_table_is_named_by_the_host_of_its_catalog():
    table = Table("main.shop.orders", catalog_host="acme.cloud.databricks.com")
    assert dataset_of(table) == ("unitycatalog://acme.cloud.databricks.com", "main.shop.orders")


@pytest.mark.parametrize(
    ("connect", "environ", "host"),
    [
        ("platform", {"DATABRICKS_HOST": "https://acme.cloud.databricks.com/"}, "acme.cloud.databricks.com"),
        ("platform", {"DATABRICKS_HOST": "acme.cloud.databricks.com"}, "acme.cloud.databricks.com"),
        ("sc://spark.local:15002/;token=secret", {}, "spark.local:15002"),
        ("platform", {}, "databricks"),
    ],
)
def test_the_host_of_a_catalog_has_no_secrets(connect: str, environ: dict[str, str], host: str):
    target = TargetConfig(
        target="t", warehouse="/w", catalog="main.rewindow", connect=connect, commit="spark", staging="rows", cores=2
    )
    assert catalog_host(target, environ) == host


def test_a_table_has_its_name_in_the_warehouse_as_a_symlink():
    table = Table("s3://lake/w/shop/orders", name="shop.orders", warehouse="s3://lake/w")
    assert symlink_of(table) == ("s3://lake/w", "shop.orders")
    assert symlink_of(Table("/raw/orders")) is None


def test_runs_on_a_branch_are_another_job():
    main = Operation("run", "shop", "local", "orders", 0, "main")
    fix = Operation("run", "shop", "local", "orders", 0, "fix")
    assert job_of(main, {}) == ("default", "shop.orders.run")
    assert job_of(fix, {"OPENLINEAGE_NAMESPACE": "prod"}) == ("prod", "shop.orders.branch-run")


@pytest.mark.parametrize("text", ["", "daily", "a/b/c", "/b/01a20630-6cf0-703f-b6b9-fe06a7fe0eab"])
def test_what_is_not_a_run_names_no_caller(text: str):
    assert caller_in({"OPENLINEAGE_PARENT_ID": text}, "OPENLINEAGE_PARENT_ID") is None


def test_the_name_of_a_callers_job_may_have_slashes():
    run = "01a20630-6cf0-703f-b6b9-fe06a7fe0eab"
    assert caller_in({"P": f"prod/daily/eu.run/{run}"}, "P") == Caller("prod", "daily/eu.run", run)
