"""Secrets in the configuration appear in no file of the warehouse, no output and no message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.bad_input.scene import FEED, Bench, copy_of, without_spark

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
