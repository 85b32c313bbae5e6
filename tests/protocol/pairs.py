"""The same project with its tables as files and governed by a catalog, to compare what commands say of both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from rewindow.contracts.instants import instant
from tests.bad_input.scene import FEED, JOB, SCORE, TARGET, Answer, Bench, goes_on, hour
from tests.ingest.local_engine import HOUR


class Pair(NamedTuple):
    """The same project on both adapters, with the same landings and runs. Outputs of the catalog are in schema ``home``."""

    files: Bench
    governed: Bench
    home: str

    @property
    def benches(self) -> tuple[Bench, Bench]:
        return self.files, self.governed

    def answers(self, *words: str) -> tuple[Answer, Answer]:
        """Return what a command says of each."""
        return self.files.run(*words), self.governed.run(*words)

    def same(self, *words: str, code: int = 0) -> Any:
        """Return what a command says of both in JSON, and check that it is the same."""
        found = []
        for answer in self.answers(*words, "--json"):
            assert answer.code == code, answer.err
            found.append(json.loads(self.named(answer.out)))
        assert found[1] == found[0]
        return found[1]

    def same_why(self, row: dict[str, Any]) -> Any:
        """Return what `why` says of an output row of both, and check that it is the same but for when it was committed."""
        found = []
        for answer in self.answers("why", "counts", row["user"], "--window", instant(row["window_start"]), "--json"):
            assert answer.code == 0, answer.err
            found.append(json.loads(self.named(answer.out)))
            assert found[-1]["run"].pop("committed_ms")
        assert found[1] == found[0]
        return found[1]

    def refused(self, *words: str, code: int) -> str:
        """Return the error of a command, and check that it is the same."""
        files, governed = self.answers(*words)
        assert (governed.code, self.named(governed.err)) == (files.code, files.err)
        assert governed.code == code
        return files.err

    def named(self, text: str) -> str:
        """Return what is said of the catalog's output with its name as a file."""
        return text.replace(f"{self.home}.totals", "alerts.totals")

    def goes_on(self, number: int) -> None:
        """Land and run an hour with two records for the quarantine: the landing rejects one, and the job drops the other."""
        for bench in self.benches:
            rows = hour(number)
            rows[5]["user"] = None
            rows[7]["t"] += 72 * HOUR
            bench.rows(f"h{number}", rows)
            goes_on(bench)


def make_pair(spark: SparkSession, root: Path, home: str, patch: pytest.MonkeyPatch) -> Pair:
    """Return a pair without landings. All commands share a session."""
    spark.sql(f"CREATE SCHEMA {home} LOCATION '{root / 'tables'}'")
    patch.setattr("rewindow.app.open_project.open_session", lambda *_of, **_options: spark)
    pair = Pair(Bench(root / "files"), Bench(root / "governed"), home)
    through_spark = f"cores: 2\nsource: shuffle\ncommit: spark\nstaging: rows\ncatalog: {home}\n"
    targets = TARGET, f"target: local\nwarehouse: heartbeats\n{through_spark}"
    for bench, target, table in zip(pair.benches, targets, ("alerts.totals", f"{home}.totals"), strict=True):
        bench.write("conf/targets/local.yaml", target)
        bench.write("conf/feeds/activity.yaml", FEED)
        bench.write("conf/jobs/counts.yaml", JOB.replace("alerts.totals", table) + "dropped: quarantine\n")
        bench.code(SCORE)
    return pair
