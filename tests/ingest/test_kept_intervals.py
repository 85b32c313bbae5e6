"""A feed with landings of older intervals keeps them until a new generation, and `land` says so once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rewindow.contracts.ingest import GRID_OF_1970
from rewindow.control.ingest import feed_progress
from rewindow.control.ingest.landings import Landing
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import HOUR, feed_config, land_locally, write_rows

MIDNIGHT = round(datetime(2026, 11, 22, tzinfo=UTC).timestamp() * 1000)
SIX_HOURS = feed_config(landing={"every": "6h"}, zone="Europe/London")


@pytest.fixture
def tables(tmp_path):
    return DeltaFeedTables(f"{tmp_path}/w")


def write(tmp_path, name, start_ms, hours):
    write_rows(
        tmp_path,
        name,
        [{"user": "ann", "t": start_ms + n * HOUR, "got": start_ms + n * HOUR, "x": n} for n in range(hours)],
    )


def intervals(tables):
    found = feed_progress.fold_progress(tables.state("activity")).feed.landings
    return [[(bound - MIDNIGHT) // HOUR for bound in landing.interval] for landing in found]


def land_as_an_older_version(tmp_path, tables, now_ms, monkeypatch):
    as_json = Landing.as_json
    with monkeypatch.context() as older:
        older.setattr(feed_progress, "DAY_GRID", GRID_OF_1970)
        older.setattr(Landing, "as_json", lambda one: {k: v for k, v in as_json(one).items() if k != "grid"})
        land_locally(SIX_HOURS, tables, tmp_path, now_ms)


def test_until_midnight_a_new_feed_is_complete_through_midnight(tmp_path, tables):
    write(tmp_path, "d0", MIDNIGHT - 12 * HOUR, 12)
    report = land_locally(SIX_HOURS, tables, tmp_path, MIDNIGHT)
    assert (report.rows, report.warnings) == (12, ())
    assert intervals(tables) == [[-12, -6], [-6, 0]]


def test_older_intervals_are_kept_until_a_new_generation_and_land_says_so_once(tmp_path, tables, monkeypatch):
    write(tmp_path, "d0", MIDNIGHT - 13 * HOUR, 6)
    land_as_an_older_version(tmp_path, tables, MIDNIGHT - 6 * HOUR, monkeypatch)
    assert intervals(tables) == [[-13, -7]]
    write(tmp_path, "d1", MIDNIGHT - 7 * HOUR, 7)
    warnings = [land_locally(SIX_HOURS, tables, tmp_path, MIDNIGHT + hours * HOUR).warnings for hours in (0, 6)]
    assert [[one.code for one in each] for each in warnings] == [["intervals-of-earlier-landings"], []]
    assert intervals(tables) == [[-13, -7], [-7, -1], [-1, 5]]
    kept = land_locally(SIX_HOURS, tables, tmp_path, MIDNIGHT + 12 * HOUR, new_generation=True, keep=3)
    assert kept.landings == ()
    again = land_locally(SIX_HOURS, tables, tmp_path, MIDNIGHT + 6 * HOUR, new_generation=True)
    assert (again.rows, again.warnings) == (13, ())
    assert intervals(tables) == [[-18, -12], [-12, -6], [-6, 0]]
