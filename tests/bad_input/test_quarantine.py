"""Rows of the quarantine that a new ledger or generation replaces: `head` and `why` leave them out."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rewindow.tables.delta.open_table import existing_table, table_path
from rewindow.tables.delta.table_rows import column_bounds, read_rows
from rewindow.tables.shared.paths import QUARANTINE
from tests.bad_input.scene import FEED, JOB, Bench, copy_of, hour
from tests.ingest.local_engine import HOUR, T0
from tests.refusals import containing, told

SKIPS = FEED.replace("got}", "got, invalid_timestamp: skip}")
UNTIMED = {"user": "ann", "t": None, "got": T0 + 3 * HOUR, "x": 1}


@pytest.fixture
def refusing(template: Bench, tmp_path: Path) -> Bench:
    """Return a project with two feeds, each with a row in the quarantine."""
    bench = copy_of(template, tmp_path / "project")
    bench.write("conf/feeds/activity.yaml", SKIPS)
    bench.write("conf/feeds/other.yaml", SKIPS.replace("feed: activity", "feed: other"))
    bench.rows("h2", [*hour(2), UNTIMED])
    bench.done("land activity", "land other")
    return bench


def quarantined(bench: Bench) -> list[tuple[str, str]]:
    """Return feed and reason of the rows in the quarantine."""
    rows = read_rows(table_path(str(bench.warehouse), QUARANTINE)).to_pylist()
    return sorted((row["name"], row["reason"]) for row in rows)


def test_a_feed_starts_over_and_its_quarantined_rows_are_those_of_the_new_ledger(refusing: Bench) -> None:
    before = quarantined(refusing)
    assert [name for name, _ in before] == ["activity", "other"]
    shutil.rmtree(refusing.warehouse / "rewindow/landings")
    assert {feed.message.code for feed in refusing.findings("activity", "other")} == {"next-call-refused"}
    for feed in ("activity", "other"):
        refusing.refuses(f"land {feed}", "log-rows-of-no-ledger", feed=feed, fix=containing("move that table away"))
        (refusing.warehouse / "logs" / feed).rename(refusing.root / f"{feed}-before")
        refusing.done(f"land {feed}")
        assert quarantined(refusing) == before
    refusing.rows("h3", [*hour(3), UNTIMED])
    refusing.done("land activity")
    assert [name for name, _ in quarantined(refusing)] == ["activity", "activity", "other"]


def test_files_of_the_quarantine_that_are_lost_are_made_again_by_the_job_whose_rows_they_had(refusing: Bench) -> None:
    """Nothing else in the file is read, and files of others need not be there."""
    refusing.write("conf/jobs/counts.yaml", f"{JOB}dropped: quarantine\n")
    for number in (3, 4):
        arrived = T0 + number * HOUR
        refusing.rows(f"h{number}", [*hour(number), {"user": "ann", "t": T0, "got": arrived, "x": 1}])
        refusing.done("land activity", "run counts")
    before = quarantined(refusing)
    assert [name for name, _ in before] == ["activity", "counts", "counts", "other"]
    folder = refusing.warehouse / QUARANTINE
    names = column_bounds(existing_table(str(folder)), "name")
    for file, (name, _) in names.items():
        if name in {"counts", "other"}:
            (folder / file).unlink()
    refusing.refuses("run counts", "published-table-changed", fix=containing("`rewindow republish counts`"))
    refusing.done("republish counts", "run counts")
    left = column_bounds(existing_table(str(folder)), "name")
    assert sorted(name for name, _ in left.values()) == [name for name, _ in before]
    refusing.done("reset counts --yes", "run counts")


def gone(file: Path) -> None:
    file.unlink()


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("lose", [gone, flipped])
def test_no_job_needs_what_a_feed_sent_to_the_quarantine(refusing: Bench, lose: Callable[[Path], None]) -> None:
    """Not even a job that has the name of a feed and writes to the same table."""
    refusing.write("conf/feeds/counts.yaml", SKIPS.replace("feed: activity", "feed: counts"))
    refusing.write("conf/jobs/counts.yaml", f"{JOB}dropped: quarantine\n")
    refusing.rows("h3", [*hour(3), {"user": "ann", "t": T0, "got": T0 + 3 * HOUR, "x": 1}, UNTIMED])
    folder = refusing.warehouse / QUARANTINE
    refusing.done("land counts", "land activity")
    before = column_bounds(existing_table(str(folder)), "name")
    refusing.done("run counts")
    names = {file: name for file, (name, _) in column_bounds(existing_table(str(folder)), "name").items()}
    of_feeds = [file for file, name in names.items() if name != "counts" or file in before]
    assert len(of_feeds) == len(names) - 1
    for file in of_feeds:
        lose(folder / file)
    (shown,) = refusing.json("head rewindow.quarantine --of activity")["tables"]
    lost = {str(folder / file) for file in of_feeds if names[file] == "activity"}
    assert ({file["file"] for file in shown["lost"]}, shown["rows"]) == (lost, [])
    unknown = [reason for reason in refusing.why("totals zoe") if reason.code == "quarantined-rows-unknown"]
    assert {reason.facts["path"] for reason in unknown} == lost
    refusing.done(
        "verify counts", "republish counts", "backfill counts --from 2 --branch trial", "verify counts --branch trial"
    )
    refusing.done("promote counts trial", "rewind counts --to 1", "run counts", "gc counts --kind job", "gc activity")
    refusing.done("land activity", "reset counts --yes", "run counts", "verify counts")


@pytest.mark.parametrize("before", [("run counts", "verify counts"), ()], ids=["run", "land"])
def test_a_feed_goes_on_without_quarantined_rows_that_are_lost(refusing: Bench, before: Sequence[str]) -> None:
    shutil.rmtree(refusing.warehouse / QUARANTINE)
    refusing.rows("h3", [*hour(3), UNTIMED])
    for line in before:
        refusing.done(line)
    told(refusing.said("land activity")["warnings"], "quarantined-rows-lost", feed="activity", rows="1 row")
    assert refusing.json("land activity")["warnings"] == []
    refusing.done("run counts", "verify counts")
    assert [name for name, _ in quarantined(refusing)] == ["activity"]


def test_rows_that_a_later_generation_has_put_into_the_quarantine_again_count_once(bench: Bench) -> None:
    def table(more: str = "") -> dict[str, Any]:
        (shown,) = bench.json(f"head rewindow.quarantine{more}")["tables"]
        return dict(shown)

    bench.edit("conf/feeds/activity.yaml", "timestamp: t,", "timestamp: t, invalid_timestamp: skip,")
    for number in (4, 5):
        untimed = {"user": "zoe", "t": None, "got": T0 + number * HOUR, "x": number}
        bench.rows(f"h{4 + number}", [*hour(number), untimed])
        bench.done("land activity")
    before = table()
    assert (before["count"], before["replaced"]) == (2, 0)
    landings = before["rows"][-1]["landing"]
    for keep, replaced in ((f" --keep {landings - 1}", 1), ("", 3)):
        bench.done(f"land activity --new-generation{keep}")
        after = table()
        assert (after["count"], after["replaced"]) == (2, replaced)
        assert [row["record"] for row in after["rows"]] == [row["record"] for row in before["rows"]]
    of_job = table(" --of counts")
    assert (of_job["count"], of_job["replaced"]) == (0, 0)
    bench.done("rewind counts --to 0", "run counts")
    told(bench.why("totals zoe"), "key-in-quarantine", records="2 rows")
