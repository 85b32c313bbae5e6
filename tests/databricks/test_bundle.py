"""The bundle, checked without a workspace: its fields are known, their references exist, and nothing is misspelt.

`tests.databricks.fields` knows the fields of jobs; those around them come from the documentation. The published schema may
only be used with Databricks' services, so it is not stored here: a test checks the bundle against it if
``DATABRICKS_BUNDLE_SCHEMA`` names a copy or the CLI is installed. If `databricks-bundles` is, it parses the jobs.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from rewindow.app.wheel_task import commands_of
from rewindow.config.load import load_feed, load_job, load_target
from rewindow.contracts.exit_codes import Next, what_next
from tests.conftest import ROOT
from tests.databricks.bundle import BUNDLE, Bundle, Raw, deployed, jobs, raw, tasks
from tests.databricks.fields import faults_of_job

REFERENCES = {"job.trigger.time.iso_datetime", "job.parameters.interval_end", "job.parameters.accept_changes"}
VARIABLES = {"owner", "run_as", "operators", "alerts", "secrets"}


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.model_validate(raw())


def test_every_field_of_every_deployed_job_is_known(bundle: Bundle) -> None:
    assert [fault for job in jobs(bundle) for fault in faults_of_job(job)] == []
    assert set(bundle.variables) == VARIABLES


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda job: job.update(max_concurent_runs=1), "max_concurent_runs: not a field"),
        (lambda job: job.update(environment_variables=[]), "environment_variables: not a field of a bundle"),
        (lambda job: job.update(queue=True), "queue: not a mapping"),
        (lambda job: job["queue"].update(enabled="yes"), "queue.enabled: 'yes' is not of type bool"),
        (lambda job: job["tasks"][0].update(timeout_secs=3), "tasks[0].timeout_secs: not a field"),
        (lambda job: job["tasks"][0].update(timeout_seconds="1h"), "tasks[0].timeout_seconds: '1h' is not of type int"),
        (lambda job: job["tasks"][0].update(libraries={}), "tasks[0].libraries: not a list"),
        (lambda job: job["tasks"][0].pop("task_key"), "tasks[0].task_key: missing"),
        (lambda job: job["tasks"][1]["depends_on"][0].update(task="run"), "tasks[1].depends_on[0].task: not a field"),
        (
            lambda job: job["tasks"][0]["python_wheel_task"].update(entrypoint="x"),
            "tasks[0].python_wheel_task.entrypoint: not a field",
        ),
        (lambda job: job["health"]["rules"][0].update(op="GREATER"), "health.rules[0].op: 'GREATER' is none of"),
        (lambda job: job["email_notifications"].update(on_failed=[]), "email_notifications.on_failed: not a field"),
        (
            lambda job: job["environments"][0]["spec"].update(dependency=[]),
            "environments[0].spec.dependency: not a field",
        ),
    ],
)
def test_a_misspelt_field_or_value_is_found_however_deep_it_is(
    bundle: Bundle, spoil: Callable[[Raw], object], fault: str
) -> None:
    job = copy.deepcopy(deployed(bundle, "serverless")["hourly_departures"])
    spoil(job)
    (found,) = faults_of_job(job)
    assert found.startswith(fault) or f".{fault}" in found


def test_each_target_deploys_every_job_once_on_its_own_kind_of_compute(bundle: Bundle) -> None:
    assert [name for name, target in bundle.targets.items() if target.default] == ["serverless"]
    names = {target: [job["name"] for job in deployed(bundle, target).values()] for target in bundle.targets}
    assert names == {
        "serverless": ["hourly_departures", "flight_weather"],
        "classic": ["hourly_departures_classic", "flight_weather_classic"],
    }
    for target, own, other in (("serverless", "environment", "job_cluster"), ("classic", "job_cluster", "environment")):
        for job in deployed(bundle, target).values():
            assert f"{other}s" not in job
            defined = {one[f"{own}_key"] for one in job[f"{own}s"]}
            assert len({task["task_key"] for task in job["tasks"]}) == len(job["tasks"])
            for task in job["tasks"]:
                assert task[f"{own}_key"] in defined
                assert f"{other}_key" not in task
                assert ("libraries" in task) == (own == "job_cluster")


def test_databricks_retries_no_error_because_the_task_knows_which_ones_to_retry(bundle: Bundle) -> None:
    for task in tasks(bundle):
        assert (task["max_retries"], task["retry_on_timeout"]) == (0, False)
        assert task.get("disable_auto_optimization", False) == ("environment_key" in task), "it retries, too"
    assert [code for code in (65, 66, 70, 76, 77, 78) if what_next(code) in (Next.RETRY, Next.RETRY_ONCE)] == []


def test_one_run_at_a_time_that_ends_and_tells_somebody_if_it_fails_or_is_slow(bundle: Bundle) -> None:
    for job in jobs(bundle):
        assert (job["max_concurrent_runs"], job["queue"]) == (1, {"enabled": True})
        pauses_s = 2 * (60 + 120 + 240)
        (rule,) = job["health"]["rules"]
        assert rule["metric"] == "RUN_DURATION_SECONDS"
        for task in job["tasks"]:
            assert pauses_s < rule["value"] < task["timeout_seconds"]
        assert job["timeout_seconds"] >= task["timeout_seconds"]
        to = ["${var.alerts}"]
        assert job["email_notifications"] == {"on_failure": to, "on_duration_warning_threshold_exceeded": to}
        assert ("schedule" in job) != ("trigger" in job)


def test_only_its_owner_may_change_the_deployed_code_and_another_identity_runs_it(bundle: Bundle) -> None:
    """Every user of a workspace may write below /Workspace/Shared. A path with the owner also means one copy."""
    assert {name for name, variable in bundle.variables.items() if variable.default is not None} == {"secrets"}
    for target in bundle.targets.values():
        assert target.workspace["root_path"].startswith("/Workspace/Users/${var.owner}/")
    assert bundle.run_as.service_principal_name == "${var.run_as}"
    given = {(one.user_name or one.service_principal_name or one.group_name): one.level for one in bundle.permissions}
    assert given == {"${var.owner}": "CAN_MANAGE", "${var.run_as}": "CAN_VIEW", "${var.operators}": "CAN_RUN"}


def test_new_code_is_deployed_although_its_version_is_the_same(bundle: Bundle) -> None:
    for artifact in bundle.artifacts.values():
        assert artifact.dynamic_version
        assert "databricks-wheel" in artifact.build
    recipe = re.search(r"^wheel:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    assert "rm -f dist/rewindow-*.whl" in recipe[1], "of two wheels the CLI takes 0.2.0.dev0 before 0.2.0"


def test_the_entry_point_is_one_of_the_wheels(bundle: Bundle) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for task in tasks(bundle):
        assert task["python_wheel_task"]["package_name"] == project["name"]
        assert task["python_wheel_task"]["entry_point"] in project["scripts"]


def test_databricks_resolves_every_reference(bundle: Bundle) -> None:
    text = "\n".join(line.partition("#")[0] for line in BUNDLE.read_text().splitlines())
    assert set(re.findall(r"\{\{(.*?)\}\}", text)) <= REFERENCES
    assert set(re.findall(r"\$\{(.*?)\}", text)) <= {
        "workspace.file_path",
        "bundle.name",
        "bundle.target",
        *(f"var.{name}" for name in VARIABLES),
    }


def test_every_task_lands_and_runs_a_job_of_the_project(bundle: Bundle) -> None:
    for job in jobs(bundle):
        defaults = {parameter["name"]: parameter["default"] for parameter in job["parameters"]}
        assert defaults == {"interval_end": "{{job.trigger.time.iso_datetime}}", "accept_changes": "false"}
        for task in job["tasks"]:
            given = {**task["python_wheel_task"]["named_parameters"], "project": str(ROOT)}
            assert given["secrets"] == "${var.secrets}"
            given |= {"interval_end": "2013-03-01T00:10:07.123", "accept_changes": "true", "secrets": "KEY=scope/key"}
            land, run = commands_of([f"--{name}={value}" for name, value in given.items()])
            assert "--accept-changes" in run
            assert "--accept-changes" not in land
            config = load_job(ROOT, given["job"])
            assert land[:4] == ["land", load_feed(ROOT, config.feed).feed, "--until", given["interval_end"]]
            assert run[:2] == ["run", config.job]


def test_a_chain_starts_when_the_task_before_it_has_succeeded(bundle: Bundle) -> None:
    for target in bundle.targets:
        first, second = deployed(bundle, target)["hourly_departures"]["tasks"]
        assert second["depends_on"] == [{"task_key": first["task_key"]}]
        assert "run_if" not in second, "its default is ALL_SUCCESS"
        names = [task["python_wheel_task"]["named_parameters"]["job"] for task in (first, second)]
        assert len({load_job(ROOT, name).feed for name in names}) == 1, "the second needs nothing landed"


def test_the_job_that_a_table_triggers_waits_for_a_table_that_the_other_one_writes(bundle: Bundle) -> None:
    catalog = (load_target(ROOT, "databricks").catalog or "").partition(".")[0]
    written = {f"{catalog}.{output.table}" for output in load_job(ROOT, "hourly_departures").outputs.values()}
    for target in bundle.targets:
        trigger = deployed(bundle, target)["flight_weather"]["trigger"]
        assert set(trigger["table_update"]["table_names"]) <= written


def test_the_target_needs_no_disk_but_the_drivers_and_nothing_that_is_not_synced(bundle: Bundle) -> None:
    target = load_target(ROOT, "databricks")
    assert (target.connect, target.commit, target.staging) == ("platform", "spark", "rows")
    assert target.ships == [], "the workers have the installed packages, so nothing is shipped"
    assert target.warehouse.startswith("/tmp/")  # noqa: S108 - heartbeats
    assert {Path(path).name for path in bundle.sync["paths"]} == {"conf", "jobs"}


def test_databricks_own_parser_accepts_the_jobs(bundle: Bundle) -> None:
    reader = pytest.importorskip(
        "databricks.bundles.jobs", reason="databricks-bundles is under Databricks' own licence"
    )
    for job in jobs(bundle):
        reader.Job.from_dict(job)


def test_the_published_schema_accepts_the_bundle() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    cli, given = shutil.which("databricks"), os.environ.get("DATABRICKS_BUNDLE_SCHEMA")
    if given:
        text = Path(given).read_text()
    elif cli:
        text = subprocess.run([cli, "bundle", "schema"], capture_output=True, text=True, check=True).stdout
    else:
        pytest.skip(
            "neither DATABRICKS_BUNDLE_SCHEMA nor the Databricks CLI: tests.databricks.fields checks the fields"
        )
    # Python's `re` has no classes of Unicode letters and numbers.
    schema = json.loads(text.replace(r"[\\p{L}\\p{N}]", r"\\w").replace(r"\\p{L}", "[a-zA-Z]"))
    validator = jsonschema.Draft202012Validator(schema)
    assert [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(raw())] == []
    spoilt = raw()
    spoilt["targets"]["classic"]["resources"]["jobs"]["flight_weather"]["tasks"][0]["max_retrys"] = 0
    assert not validator.is_valid(spoilt)
