"""Which storage can be a warehouse, and the settings for buckets."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rewindow.app.open_project import OpenProject
from rewindow.config.load import load_target
from rewindow.errors import ConfigError
from rewindow.storage.locations import filesystem_of, options_of, use
from tests.refusals import Refusal, containing, refused


@pytest.mark.parametrize(
    ("location", "refusal"),
    [
        ("dbfs://w", refused("warehouse-scheme-unknown", schemes=containing("s3"))),
        ("hdfs://host/w", refused("warehouse-scheme-unknown", schemes=containing("s3"))),
        ("/Volumes/main/w", refused("warehouse-is-mounted-bucket")),
        ("/dbfs/w", refused("warehouse-is-mounted-bucket")),
        ("/", refused("warehouse-is-root")),
        ("//", refused("warehouse-is-root")),
        ("/.", refused("warehouse-is-root")),
        ("file:///", refused("warehouse-is-root")),
    ],
)
def test_storage_that_cannot_be_a_warehouse_is_refused(tmp_path: Path, location: str, refusal: Refusal):
    folder = tmp_path / "conf" / "targets"
    folder.mkdir(parents=True)
    (folder / "there.yaml").write_text(yaml.safe_dump({"target": "there", "warehouse": location}))
    with refusal:
        OpenProject.open(tmp_path, "there")


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}, refused("unsafe-rename-enabled")),
        ({"AWS_CONDITIONAL_PUT": "disabled"}, refused("conditional-put-not-etag")),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9000"}, refused("endpoint-not-encrypted")),
        ({"AWS_ENDPOINT_URL": "127.0.0.1:9000"}, refused("endpoint-without-scheme")),
        ({"GOOGLE_APPLICATION_CREDENTIALS": "key.json"}, refused("storage-options-not-supported")),
    ],
)
def test_a_bucket_is_opened_with_settings_that_are_safe(tmp_path: Path, options: dict[str, str], refusal: Refusal):
    location = "gs://bucket/w" if "GOOGLE_APPLICATION_CREDENTIALS" in options else "s3://bucket/w"
    _write_target(tmp_path, warehouse=location, storage_options=options)
    with refusal:
        OpenProject.open(tmp_path, "there")


def test_the_environment_counts_as_the_settings_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_S3_ALLOW_UNSAFE_RENAME", "true")
    _write_target(tmp_path, warehouse="s3://bucket/w")
    with refused("unsafe-rename-enabled"):
        OpenProject.open(tmp_path, "there")


def test_both_clients_of_a_bucket_get_one_endpoint_and_one_region(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://environment")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    use("s3://one/w", {"AWS_ENDPOINT": "https://told"})
    use("s3://other/w", {})
    assert options_of("s3://one/w/t") == {"AWS_ENDPOINT_URL": "https://told", "AWS_REGION": "eu-west-1"}
    assert options_of("s3://other/w/t") == {"AWS_ENDPOINT_URL": "https://environment", "AWS_REGION": "eu-west-1"}
    assert options_of("/folder/t") is None


@pytest.mark.parametrize(("name", "value"), [("AWS_ENDPOINT_URL", "https://prod"), ("AWS_REGION", "eu-west-1")])
def test_a_process_opens_one_bucket_under_a_uri(name: str, value: str):
    uri, dev = f"s3://twice/{name}", {"AWS_ENDPOINT_URL": "https://dev", "AWS_REGION": "us-east-1"}
    use(uri, {**dev, "AWS_ACCESS_KEY_ID": "first"})
    what = "endpoint" if name == "AWS_ENDPOINT_URL" else "region"
    with pytest.raises(ConfigError, match=f"opened it with another {what}. Open it in another process"):
        use(f"{uri}/", {**dev, name: value})
    assert options_of(f"{uri}/t") == {**dev, "AWS_ACCESS_KEY_ID": "first"}, "the first settings still count"


def test_the_environment_leads_to_no_other_bucket_later(monkeypatch: pytest.MonkeyPatch):
    use("s3://moved/w", {})
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://elsewhere")
    with refused("bucket-settings-changed", settings="endpoint"):
        use("s3://moved/w", {})


def test_credentials_that_expire_are_replaced():
    given = {"AWS_ENDPOINT": "https://told", "AWS_DEFAULT_REGION": "eu-west-1"}
    use("s3://renewed/w", {**given, "AWS_ACCESS_KEY_ID": "first"})
    use(
        "s3://renewed/w",
        {"AWS_ENDPOINT_URL": "https://told/", "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "second"},
    )
    assert (options_of("s3://renewed/w/t") or {})["AWS_ACCESS_KEY_ID"] == "second"


def test_settings_that_are_refused_are_not_kept():
    with refused("conditional-put-not-etag"):
        use("s3://unsafe/w", {"AWS_CONDITIONAL_PUT": "disabled"})
    assert options_of("s3://unsafe/w/t") == {}


@pytest.mark.parametrize("location", ["gs://bucket/w", "abfss://files@account.dfs.core.windows.net/w"])
def test_other_clouds_are_opened_without_a_word_to_them(location: str):
    use(location, {"AZURE_STORAGE_ACCOUNT_KEY": "a2V5"} if location.startswith("abfss") else {})
    assert filesystem_of(f"{location}/t")[1] in {"bucket/w/t", "files/w/t"}


def test_half_a_credential_is_told_without_the_other_half():
    use("s3://half/w", {"AWS_ACCESS_KEY_ID": "canary"})
    with refused("bucket-options-invalid") as caught:
        filesystem_of("s3://half/w/t")
    assert "canary" not in str(caught.value)


CONFLICT, INVALID = "config-values-conflict", "config-value-invalid"


@pytest.mark.parametrize("location", ["s3://bucket/w", "gs://bucket/w", "abfss://files@account.dfs.core.windows.net/w"])
def test_a_bucket_may_be_a_warehouse(tmp_path: Path, location: str):
    _write_target(tmp_path, warehouse=f"{location}/")
    assert OpenProject.open(tmp_path, "there").warehouse == location


@pytest.mark.parametrize(
    ("given", "code", "why"),
    [
        ({"warehouse": "s3://bucket/w", "source": "shuffle"}, CONFLICT, "use auto"),
        (
            {"warehouse": "s3://bucket/w", "commit": "spark", "staging": "rows", "catalog": "main.rewindow"},
            CONFLICT,
            "the catalog stores all tables",
        ),
        ({"warehouse": "w", "storage_options": {"AWS_REGION": "eu-west-1"}}, CONFLICT, "remove them"),
        ({"warehouse": "s3://bucket/w", "storage_options": {"aws_region": "eu-west-1"}}, INVALID, "in capitals"),
        ({"warehouse": "s3://bucket/w", "storage_options": {"PATH": "/"}}, INVALID, "not a storage option"),
        ({"warehouse": "s3://bucket/w", "storage_options": {"AWS_REGION": ["x"]}}, INVALID, "single value"),
    ],
)
def test_what_does_not_go_with_a_bucket_is_refused(tmp_path: Path, given: dict[str, object], code: str, why: str):
    _write_target(tmp_path, **given)
    with refused(code, problem=containing(why)):
        load_target(tmp_path, "there")


def _write_target(root: Path, **keys: object) -> None:
    folder = root / "conf" / "targets"
    folder.mkdir(parents=True)
    (folder / "there.yaml").write_text(yaml.safe_dump({"target": "there", **keys}))
