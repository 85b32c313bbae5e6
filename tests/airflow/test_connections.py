"""What connections of each type mean to rewindow: credentials, and fields that would mean another identity. No Airflow needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rewindow.airflow.hooks import Fields, bucket_settings, workspace_settings
from rewindow.airflow.log_watermarks import complete_through
from rewindow.errors import ConfigError
from tests.refusals import refused

SECRET = "hush-4f1e"  # noqa: S105 - it is none
KEYS = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": None}
NO_AZURE: dict[str, str | None] = dict.fromkeys(
    ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")
)
KEY = {**NO_AZURE, "AZURE_STORAGE_ACCOUNT_KEY": SECRET}
BUCKETS: list[tuple[dict[str, Any], dict[str, str | None]]] = [
    ({"conn_type": "aws", "login": "AKIA", "password": SECRET}, KEYS),
    ({"conn_type": "aws", "extra": {"aws_access_key_id": "AKIA", "aws_secret_access_key": SECRET}}, KEYS),
    (
        {
            "conn_type": "aws",
            "login": "AKIA",
            "password": SECRET,
            "extra": {"aws_session_token": "t", "region_name": "eu"},
        },
        {**KEYS, "AWS_SESSION_TOKEN": "t", "AWS_REGION": "eu"},
    ),
    (
        {
            "conn_type": "aws",
            "extra": {"endpoint_url": "https://a", "service_config": {"s3": {"endpoint_url": "https://b"}}},
        },
        {"AWS_ENDPOINT_URL": "https://b", "AWS_ENDPOINT_URL_S3": None, "AWS_ENDPOINT": None},
    ),
    ({"conn_type": "aws"}, {}),
    ({"conn_type": "wasb", "login": "files", "password": SECRET}, KEY),
    ({"conn_type": "wasb", "extra": {"extra__wasb__shared_access_key": SECRET}}, KEY),
    ({"conn_type": "wasb", "extra": {"connection_string": f"AccountName=files;AccountKey={SECRET};X=y"}}, KEY),
    (
        {"conn_type": "adls", "login": "app", "password": SECRET, "extra": {"tenant_id": "us"}},
        {**NO_AZURE, "AZURE_TENANT_ID": "us", "AZURE_CLIENT_ID": "app", "AZURE_CLIENT_SECRET": SECRET},
    ),
    ({"conn_type": "wasb"}, {}),
    (
        {"conn_type": "google_cloud_platform", "extra": {"key_path": "/opt/key.json"}},
        {"GOOGLE_APPLICATION_CREDENTIALS": "/opt/key.json"},
    ),
    ({"conn_type": "google_cloud_platform"}, {}),
]
OTHERS: list[tuple[dict[str, Any], str]] = [
    ({"conn_type": "http"}, "has the type 'http': for a bucket use one of aws, google_cloud_platform, wasb, adls"),
    ({"conn_type": "aws", "login": "AKIA"}, "has half of a key: give its id and its secret, or neither"),
    ({"conn_type": "wasb", "password": SECRET, "extra": {"tenant_id": "us"}}, "add them"),
    ({"conn_type": "aws", "extra": {"role_arn": "arn:x"}}, "cannot use role_arn of its extra: use keys, or let"),
    ({"conn_type": "aws", "extra": {"session_kwargs": {"profile_name": "x"}}}, "cannot use profile_name"),
    ({"conn_type": "google_cloud_platform", "extra": {"keyfile_dict": SECRET}}, "give the path of a key file"),
    ({"conn_type": "wasb", "extra": {"sas_token": SECRET}}, "cannot use sas_token of its extra"),
    ({"conn_type": "wasb", "extra": {"connection_string": f"Sas={SECRET}"}}, "its connection_string has no AccountKey"),
]


@pytest.mark.parametrize(("given", "expected"), BUCKETS)
def test_a_connection_gives_the_credentials_that_its_provider_would_use(
    given: dict[str, Any], expected: dict[str, str | None]
) -> None:
    conn = Fields("lake", **given)
    assert bucket_settings(conn) == expected
    assert SECRET not in repr(conn)


@pytest.mark.parametrize(("given", "words"), OTHERS)
def test_a_connection_that_would_open_a_bucket_as_somebody_else_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        bucket_settings(Fields("lake", **given))
    assert "connection lake" in str(caught.value)
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_workspace_is_opened_with_a_token_or_as_a_service_principal() -> None:
    def settings(**given: Any) -> dict[str, str]:
        return workspace_settings(Fields("dbx", "databricks", "https://adb", **given))

    token = {"host": "https://adb", "token": SECRET, "auth_type": "pat"}
    assert settings(password=SECRET) == settings(login="token", password=SECRET) == token
    assert settings(extra={"token": SECRET}) == token
    assert settings(login="app", password=SECRET, extra={"service_principal_oauth": True}) == {
        "host": "https://adb",
        "client_id": "app",
        "client_secret": SECRET,
        "auth_type": "oauth-m2m",
    }
    assert settings(login="app", password=SECRET, extra={"azure_tenant_id": "us"})["auth_type"] == "azure-client-secret"
    with refused("databricks-credentials-missing"):
        settings(login="ann", password=SECRET)
    with refused("connection-field-not-supported", field="use_azure_managed_identity"):
        settings(extra={"use_azure_managed_identity": True})
    with refused("databricks-host-missing"):
        workspace_settings(Fields("dbx", "databricks", password=SECRET))
    with refused("connection-not-databricks"):
        workspace_settings(Fields("dbx", "http", "https://adb", password=SECRET))


def test_a_sensor_does_not_mix_a_connection_with_the_token_of_its_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part, text in {
        "feeds/a": "feed: a\npartitions: 1\nlogs: {a: {source: {path: a, format: parquet}, key: k, timestamp: t}}\n",
        "targets/local": "target: local\nwarehouse: s3://events/warehouse\n",
    }.items():
        file = tmp_path / "conf" / f"{part}.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of the worker")
    with refused("connection-credentials-mixed", variable="AWS_SESSION_TOKEN"):
        complete_through(str(tmp_path), "local", "a", KEYS)
