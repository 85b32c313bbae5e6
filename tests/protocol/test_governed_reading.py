"""Commands that people read with say of tables that a catalog governs what they say of files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from tests.bad_input.scene import FEED, JOB, SCORE, TARGET, Answer, Bench, goes_on, hour

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOME = "spark_catalog.reading"
GOVERNED = (
    f"target: local\nwarehouse: heartbeats\ncores: 2\nsource: shuffle\ncommit: spark\nstaging: rows\ncatalog: {HOME}\n"
)
RUNS = 3


class Pair(NamedTuple):
    """The same project on both adapters, with the same landings and runs."""

    files: Bench
    governed: Bench

    def answers(self, *words: str) -> tuple[Answer, Answer]:
        """Return what a command says of each."""
        return self.files.run(*words), self.governed.run(*words)

    def same(self, *words: str, code: int = 0) -> Any:
        """Return what a command says of both in JSON, and check that it is the same."""
        found = []
        for answer in self.answers(*words, "--json"):
            assert answer.code == code, answer.err
            found.append(json.loads(answer.out.replace(f"{HOME}.totals", "alerts.totals")))
        assert found[1] == found[0]
        return found[1]

    def refused(self, *words: str, code: int) -> str:
        """Return the error of a command, and check that it is the same."""
        files, governed = self.answers(*words)
        assert (governed.code, governed.err) == (files.code, files.err) and files.code == code
        return governed.err


@pytest.fixture(scope="module")
def pair(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    root = tmp_path_factory.mktemp("pair")
    spark.sql(f"CREATE SCHEMA {HOME} LOCATION '{root / 'tables'}'")
    pair = Pair(Bench(root / "files"), Bench(root / "governed"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rewindow.app.open_project.open_session", lambda *_of, **_options: spark)
        for bench, target, table in zip(pair, (TARGET, GOVERNED), ("alerts.totals", f"{HOME}.totals"), strict=True):
            bench.write("conf/targets/local.yaml", target)
            bench.write("conf/feeds/activity.yaml", FEED)
            bench.write("conf/jobs/counts.yaml", JOB.replace("alerts.totals", table) + "dropped: quarantine\n")
            bench.code(SCORE)
            for number in range(RUNS):
                rows = hour(number)
                rows[5]["user"] = None  # the quarantine gets it
                bench.rows(f"h{number}", rows)
                goes_on(bench)
        yield pair


def test_state_of_governed_tables(pair: Pair, tmp_path: Path) -> None:
    for at in ("main/1", "main/3"):
        files, governed = (
            json.loads(answer.out)["stores"] for answer in pair.answers("state", "list", "counts", "--at", at, "--json")
        )
        assert [{**one, "bytes": 0} for one in governed] == [{**one, "bytes": 0} for one in files]
        assert all(one["bytes"] and one["entries"] for one in governed)
    shown = pair.same("state", "show", "counts", "sums")
    assert shown
    assert pair.same("state", "show", "counts", "sums", "--key", "ann", "--at", "main/2") != shown
    pair.same("state", "diff", "counts", "sums", "main/1", "main/3", code=1)
    exported = [tmp_path / f"{name}.json" for name in Pair._fields]
    for bench, to in zip(pair, exported, strict=True):
        assert bench.run("state", "export", "counts", "sums", "--to", str(to)).code == 0
    assert exported[0].read_text() == exported[1].read_text() != ""
    pair.refused("state", "show", "counts", "nothing", code=2)
    pair.refused("state", "list", "counts", "--at", "main/7", code=2)


def test_head_of_governed_tables(pair: Pair) -> None:
    for words in ((), ("-n", "3"), ("-n", "4", "--last")):
        (shown,) = pair.same("head", "counts", *words)["tables"]
        assert shown["rows"]
        table = "rewindow.quarantine"
        assert pair.same("head", table, *words)["tables"][0]["rows"]
    pair.same("head", "rewindow.quarantine", "--of", "activity")
    pair.same("head", "rewindow.quarantine", "--of", "counts", "--branch", "main")
    pair.refused("head", "nothing", code=2)
    pair.refused("head", "counts", "--branch", "nothing", code=2)
    pair.refused("head", "counts", "--held", code=1)
