"""`head` and `why` leave out rows of the quarantine that `land --new-generation` has replaced."""

from __future__ import annotations

import json
from pathlib import Path

from tests.bad_input.scene import Bench, copy_of, hour, without_spark
from tests.ingest.local_engine import HOUR, T0


def test_rows_that_a_later_generation_has_put_into_the_quarantine_again_count_once(
    template: Bench, tmp_path: Path
) -> None:
    with without_spark():
        _landed_again(copy_of(template, tmp_path / "project"))


def _landed_again(bench: Bench) -> None:
    feed = (bench.root / "conf/feeds/activity.yaml").read_text(encoding="utf-8")
    bench.write("conf/feeds/activity.yaml", feed.replace("timestamp: t,", "timestamp: t, invalid_timestamp: skip,"))
    bench.rows("h8", [*hour(4), {"user": "zoe", "t": None, "got": T0 + 4 * HOUR, "x": 1}])
    assert bench.run("land", "activity").code == 0
    bench.rows("h9", [*hour(5), {"user": "zoe", "t": None, "got": T0 + 5 * HOUR, "x": 2}])
    assert bench.run("land", "activity").code == 0
    before = json.loads(bench.run("head", "rewindow.quarantine", "--json").out)["tables"][0]
    assert (before["count"], before["replaced"]) == (2, 0)
    landings = before["rows"][-1]["landing"]
    for keep, replaced in ((("--keep", str(landings - 1)), 1), ((), 3)):
        answer = bench.run("land", "activity", "--new-generation", *keep)
        assert answer.code == 0, answer
        after = json.loads(bench.run("head", "rewindow.quarantine", "--json").out)["tables"][0]
        assert (after["count"], after["replaced"]) == (2, replaced)
        assert [row["record"] for row in after["rows"]] == [row["record"] for row in before["rows"]]
        of = json.loads(bench.run("head", "rewindow.quarantine", "--of", "counts", "--json").out)["tables"][0]
        assert (of["count"], of["replaced"]) == (0, 0)
    assert (
        "3 more rows are of landings that `rewindow land --new-generation` has replaced, and not shown."
        in bench.run("head", "rewindow.quarantine").out
    )
    for words in (("rewind", "counts", "--to", "0"), ("run", "counts")):
        answer = bench.run(*words)
        assert answer.code == 0, answer
    reasons = json.loads(bench.run("why", "totals", "zoe", "--missing", "--json").out)["reasons"]
    assert next(reason for reason in reasons if "quarantine" in reason).startswith(
        "2 rows with this key are in the quarantine"
    )
