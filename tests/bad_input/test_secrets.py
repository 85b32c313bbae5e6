"""Secrets in the configuration appear in no file of the warehouse, no output and no message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rewindow.app.failures import failure_of
from rewindow.app.telemetry.announce import Warner
from rewindow.errors import ConfigError, HintMessage, RewindowError
from rewindow.storage import locations
from tests.bad_input.scene import FEED, Bench, copy_of, without_spark
from tests.refusals import refused

CANARY = "canary-4f1e"
TARGET = "target: local\nwarehouse: warehouse\nspark:\n  spark.hadoop.fs.s3a.secret.key: {secret}\n"
COMMANDS = (
    "land secret",
    "land secret --new-generation --json",
    "run secrets --log-format json",
    "run secrets --json",
    "plan secrets --json",
    "explain secrets",
    "explain secrets --json",
    "show secrets --json",
    "land secret --debug",
)


@pytest.fixture(scope="module")
def bench(two_hours: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with without_spark():
        made = copy_of(two_hours, tmp_path_factory.mktemp("bench") / "project")
        options = f"options: {{password: {CANARY}, token: {CANARY}}}"
        feed = FEED.replace("feed: activity", "feed: secret").replace("format: parquet", f"format: parquet, {options}")
        made.write("conf/feeds/secret.yaml", feed)
        job = (made.root / "conf/jobs/counts.yaml").read_text()
        job = job.replace("counts", "secrets").replace("activity", "secret").replace("alerts.totals", "alerts.secrets")
        made.write("conf/jobs/secrets.yaml", job)
        made.write("conf/targets/local.yaml", TARGET.format(secret=CANARY))
        yield made


@pytest.mark.slow
def test_no_file_and_no_output_has_a_secret(bench: Bench) -> None:
    for command in COMMANDS:
        answer = bench.run(*command.split())
        assert answer.code == 0, answer.err
        assert CANARY not in answer.out + answer.err, command
    changed = (bench.root / "conf/feeds/secret.yaml").read_text().replace(CANARY, f"{CANARY}-new")
    bench.write("conf/feeds/secret.yaml", changed)
    assert bench.run("land", "secret").code == 0, "a new password does not change the feed's definition"
    bench.write("conf/feeds/secret.yaml", changed.replace("partitions: 2", "partitions: 3"))
    refused = bench.run("land", "secret")
    assert refused.code == 66
    assert "partitions: 2 -> 3" in refused.err
    assert CANARY not in refused.err
    for wrong in ("spark: {password: %s}", "spark: {spark.x: [%s]}", "cores: %s"):
        bench.write("conf/targets/local.yaml", f"target: local\nwarehouse: warehouse\n{wrong % CANARY}\n")
        answer = bench.run("plan", "secrets")
        assert answer.code == 78
        assert CANARY not in answer.err
    bench.write("conf/targets/local.yaml", TARGET.format(secret=CANARY))
    bench.write(
        "conf/feeds/secret.yaml",
        FEED.replace("feed: activity", "feed: secret").replace("path: raw", f"path: s3a://user:{CANARY}@bucket/raw"),
    )
    refused = bench.run("land", "secret")
    assert refused.code == 78
    assert "contains a password" in refused.err
    assert CANARY not in refused.err
    for path in _files(bench.warehouse):
        assert CANARY.encode() not in path.read_bytes(), path
        if path.suffix == ".parquet" and "_delta_log" not in path.parts:
            assert CANARY not in str(pq.ParquetFile(path).read().to_pylist()), path


def _files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


ADDRESSES = {
    f"http://user:{CANARY}@minio:9000/b": "http://***@minio:9000/b",
    f"GET http://user:{CANARY}@minio:9000/b failed, see http://user:{CANARY}@minio/c": (
        "GET http://***@minio:9000/b failed, see http://***@minio/c"
    ),
    f"https://{CANARY}@host/x": "https://***@host/x",
    f"http://user:{CANARY}@more@host/x": "http://***@host/x",
    f"http://user:{CANARY}/more@host": "http://***@host",
    f"https://host/v1?a=1&api_key={CANARY}&b=2": "https://host/v1?a=1&api_key=***&b=2",
    f"https://acc.blob.core/x?sv=2024&sig={CANARY}%3D": "https://acc.blob.core/x?sv=2024&sig=***",
    f"https://s3/x?X-Amz-Credential={CANARY}&X-Amz-Signature={CANARY}": (
        "https://s3/x?X-Amz-Credential=***&X-Amz-Signature=***"
    ),
    f"sc://host:15002/;token={CANARY};user_id=ann": "sc://host:15002/;token=***;user_id=ann",
    "abfss://shop@account.dfs.core.windows.net/x": "abfss://shop@account.dfs.core.windows.net/x",
    "http://localhost:9000/a@b and s3://b/c:d@e": "http://localhost:9000/a@b and s3://b/c:d@e",
    "ann@example.com 12:30": "ann@example.com 12:30",
}


@pytest.mark.parametrize("text", ADDRESSES)
def test_no_message_shows_who_an_address_logs_in(text: str) -> None:
    shown = ADDRESSES[text]
    for error in (
        ConfigError("c", "{reason}", reason=text),
        ConfigError("c", "it is: {reason}", reason="").surrounded(after=text),
        RewindowError.restored("c", text, {}),
        locations.failed("s3://b/t", OSError(text)),
        failure_of(RuntimeError(text)),
    ):
        message = error.message
        assert CANARY not in message
        assert shown in message
    assert HintMessage("c", "{reason}", reason=text) == shown


def test_an_endpoint_without_scheme_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"user:{CANARY}@minio:9000")
    with refused("endpoint-without-scheme", endpoint="minio:9000"):
        locations.use("s3://b/t", {})


@pytest.mark.parametrize(
    "why", [f"exporting to user:{CANARY}@collector:4317, retrying", f"cannot reach http://user:{CANARY}@collector/v1"]
)
def test_a_warning_of_telemetry_has_no_password(why: str, capsys: pytest.CaptureFixture[str]) -> None:
    Warner("OpenTelemetry").warn(why)
    warned = capsys.readouterr().err
    assert CANARY not in warned
    assert "***@collector" in warned
