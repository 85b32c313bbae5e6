"""Commands that people read with say of tables that a catalog governs what they say of files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.protocol.pairs import Pair, make_pair

# `test_governed_commands` has a part of it that is played more often.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]


@pytest.fixture(scope="module")
def pair(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Return a pair after three runs."""
    with pytest.MonkeyPatch.context() as patch:
        pair = make_pair(spark, tmp_path_factory.mktemp("pair"), "spark_catalog.reading", patch)
        for number in range(3):
            pair.goes_on(number)
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
    exported = [tmp_path / f"{number}.json" for number in range(2)]
    for bench, to in zip(pair.benches, exported, strict=True):
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


def test_head_of_a_run_on_hold(pair: Pair) -> None:
    for bench in pair.benches:
        text = (bench.root / "conf/jobs/counts.yaml").read_text().replace("job: counts", "job: held")
        expects = "expect: [{rows: {max: 1}, on_fail: hold}]"
        bench.write("conf/jobs/held.yaml", text.replace("totals}", f"held, {expects}}}"))
        assert bench.run("run", "held").code == 79
    for words in ((), ("-n", "2", "--last")):
        found = []
        for answer in pair.answers("head", "held", "--held", "--json", *words):
            assert answer.code == 0, answer.err
            (table,) = json.loads(answer.out.replace(f"{pair.home}.held", "alerts.held"))["tables"]
            found.append((table["count"], table["rows"], table["keys"]))
        assert found[1] == found[0]
        assert found[0][1]


def test_why_of_governed_tables(pair: Pair) -> None:
    rows = pair.same("head", "counts", "-n", "100")["tables"][0]["rows"]
    for row in (rows[0], rows[-1]):
        why = pair.same_why(row)
        assert (why["row"]["value"], why["is_reproduced"]) == (len(why["records"]), True)
    for key in ("ann", "ANN", "zoe"):
        pair.same("why", "counts", key, "--missing")
    pair.refused("why", "counts", "zoe", code=1)
    pair.refused("why", "rewindow.quarantine", "ann", code=2)


def test_rows_of_replaced_landings_are_left_out(pair: Pair) -> None:
    for answer in pair.answers("land", "activity", "--new-generation"):
        assert answer.code == 0, answer.err
    (shown,) = pair.same("head", "rewindow.quarantine", "-n", "100")["tables"]
    assert shown["replaced"] == 3
    assert {row["landing"] for row in shown["rows"] if row.get("node") is None} == {1}
