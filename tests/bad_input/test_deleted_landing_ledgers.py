"""A feed whose landing ledger was deleted starts over: its log is removed, and its rows in the quarantine are replaced."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rewindow.tables.delta.commit import table_path
from rewindow.tables.delta.table_rows import read_rows
from rewindow.tables.shared.paths import QUARANTINE
from tests.bad_input.scene import FEED, Bench, copy_of, hour
from tests.ingest.local_engine import HOUR, T0

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
        refusing.refuses(f"land {feed}", "log-rows-of-no-ledger", feed=feed)
        shutil.rmtree(refusing.warehouse / "logs" / feed)
        refusing.done(f"land {feed}")
        assert quarantined(refusing) == before
    refusing.rows("h3", [*hour(3), UNTIMED])
    refusing.done("land activity")
    assert [name for name, _ in quarantined(refusing)] == ["activity", "activity", "other"]
