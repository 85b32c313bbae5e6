"""The fingerprint of a feed's definition: a change of anything except waiting times needs a new generation."""

from __future__ import annotations

import pytest

from rewindow.control.ingest.generations import differences
from rewindow.control.ingest.landings import fold_feed
from rewindow.streams.record import TopicPartition
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.warehouse import DeltaTables
from tests.ingest.local_engine import HOUR, T0, feed_config, land_locally, landings, log_rows, write_rows
from tests.refusals import Refusal, containing, refused

NOW = T0 + 3 * HOUR


def rows_of(hour, offset=0):
    return [
        {"user": f"u{n}", "t": T0 + hour * HOUR + n, "got": T0 + hour * HOUR + n, "x": n + offset} for n in range(5)
    ]


@pytest.fixture
def landed(tmp_path):
    for hour in range(3):
        write_rows(tmp_path, f"hour-{hour}", rows_of(hour))
    tables = DeltaFeedTables(f"{tmp_path}/w")
    land_locally(feed_config(), tables, tmp_path, NOW)
    return tables


def test_waiting_may_change_at_any_time(tmp_path, landed):
    feed = feed_config(
        lag="5m", max_task_idle="forever", landing={"every": "1h", "watermark": "interval_end", "max_ahead": "2d"}
    )
    assert land_locally(feed, landed, tmp_path, NOW + HOUR, until_ms=NOW + HOUR).landings == (4,)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"partitions": 4}, "partitions: 3 -> 4"),
        ({"landing": {"every": "2h"}}, 'every: "1h" -> "2h"'),
        ({"zone": "Europe/Berlin"}, "zone"),
        ({"log": {"key": "x", "value": ["user"]}}, "logs.events.key"),
        ({"log": {"units": {"t": "s"}}}, "logs.events.units"),
        ({"log": {"columns": {"y": "x"}}}, "logs.events.columns.y"),
    ],
)
def test_any_other_change_is_refused_by_name(tmp_path, landed, changed, said):
    with refused("feed-definition-changed") as caught:
        land_locally(feed_config(**changed), landed, tmp_path, NOW + HOUR)
    assert said in str(caught.value)


def test_logs_that_came_or_went_or_have_another_name_are_named():
    one, other = {"key": ["user"], "value": None}, {"key": ["device"], "value": None}
    before = {"partitions": 3, "logs": {"clicks": one, "views": other, "sales": one}}
    now = {"partitions": 3, "logs": {"sales": other, "shown": other, "taps": one, "visits": {"key": ["visit"]}}}
    assert list(differences(before, now)) == [
        "the log clicks is named taps now",
        "the log views is named shown now",
        "the log visits is new",
        'logs.sales.key: ["user"] -> ["device"]',
    ]
    assert list(differences(now, {**now, "logs": {}}))[:1] == ["the log sales is gone"]


def test_a_new_generation_lands_all_again_under_the_new_definition(tmp_path, landed):
    report = land_locally(feed_config(partitions=5), landed, tmp_path, NOW, new_generation=True)
    assert (report.generation, report.landings, report.rows) == (2, (1, 2, 3), 15)
    feed = fold_feed((row.kind, row.body) for row in landed.state("activity"))
    assert (feed.definition.generation, feed.definition.partitions, len(feed.landings)) == (2, 5, 3)
    assert len(log_rows(landed, generation=1)) == len(log_rows(landed, generation=2)) == 15
    assert land_locally(feed_config(partitions=5), landed, tmp_path, NOW).landings == ()


def test_a_new_generation_keeps_landings_and_takes_the_rest_from_a_rewritten_source(tmp_path, landed):
    before = landings(landed)
    for hour in range(3):
        write_rows(tmp_path, f"hour-{hour}", rows_of(hour, offset=100))
    with refused("landed-file-changed", what="has changed"):
        land_locally(feed_config(), landed, tmp_path, NOW + HOUR)
    report = land_locally(feed_config(), landed, tmp_path, NOW, new_generation=True, keep=1)
    assert (report.generation, report.landings, report.rows, report.behind) == (2, (2, 3), 10, 0)
    assert all(row["x"] >= 100 for row in log_rows(landed, generation=2))
    feed = fold_feed((row.kind, row.body) for row in landed.state("activity"))
    assert [landing.generation for landing in feed.landings] == [1, 2, 2]
    assert [landing["ranges"] for landing in landings(landed)[-2:]] == [landing["ranges"] for landing in before[1:]]
    write_rows(tmp_path, "hour-3", rows_of(3))
    assert land_locally(feed_config(), landed, tmp_path, NOW + HOUR).landings == (4,)
    assert land_locally(feed_config(), landed, tmp_path, NOW + HOUR).landings == ()
    check_files(landed)


def check_files(tables):
    """Check that the files that the engine finds for each topic-partition contain each offset once."""
    warehouse = DeltaTables(tables.warehouse)
    feed = warehouse.feed("activity")
    rows = log_rows(tables)
    for partition in range(3):
        where = TopicPartition("events", partition)
        landed = feed.landings[-1].ranges.get(where)
        if landed is None:
            continue
        offsets = [
            offset
            for file in warehouse.log_files(feed, where, 0, landed.end)
            for offset in range(file.first, file.last + 1)
        ]
        assert offsets == list(range(landed.end))
        kept = feed.landings[0].ranges.get(where)
        new = [row["offset"] for row in rows if row["generation"] == 2 and row["partition"] == partition]
        assert new == list(range(kept.end if kept else 0, landed.end))


def test_keeping_without_intervals_goes_on_after_the_files_that_are_kept(tmp_path):
    tables, feed = DeltaFeedTables(f"{tmp_path}/w"), feed_config(landing={})
    for number in range(3):
        write_rows(tmp_path, f"part-{number}", rows_of(number))
        land_locally(feed, tables, tmp_path, NOW)
    report = land_locally(feed, tables, tmp_path, NOW, new_generation=True, keep=2)
    assert (report.landings, report.rows) == ((3,), 5)
    assert [row["x"] for row in log_rows(tables, generation=2)] == [
        row["x"] for row in log_rows(tables) if row["landing"] == 3
    ][:5]


def test_a_generation_that_keeps_fewer_landings_begins_although_nothing_is_new_to_land(tmp_path):
    tables, feed = DeltaFeedTables(f"{tmp_path}/w"), feed_config(landing={})
    for number in range(3):
        write_rows(tmp_path, f"part-{number}", rows_of(number))
        land_locally(feed, tables, tmp_path, NOW)
    (tmp_path / "raw/part-2.parquet").unlink()
    asked = {"new_generation": True, "keep": 2}
    report = land_locally(feed, tables, tmp_path, NOW, **asked)
    assert (report.generation, report.landings) == (2, ())
    Refusal("generation-keeps-landings", {"generation": 2, "kept": 2, "nulls": ""}).check(report.waiting)
    kept = tables.state("activity")
    assert len(fold_feed((row.kind, row.body) for row in kept).landings) == 2
    again = land_locally(feed, tables, tmp_path, NOW, **asked)
    Refusal("generation-not-started", {"kept": 2}).check(again.waiting)
    assert (again.landings, tables.state("activity")) == ((), kept)
    write_rows(tmp_path, "part-3", rows_of(5))
    assert land_locally(feed, tables, tmp_path, NOW + 6 * HOUR).landings == (3,)


def test_a_generation_that_keeps_all_landings_begins_and_takes_the_landed_files_as_they_are_now(tmp_path, landed):
    write_rows(tmp_path, "hour-2", rows_of(2, offset=100))
    with refused("landed-file-changed", file="hour-2.parquet", what="has changed"):
        land_locally(feed_config(), landed, tmp_path, NOW + HOUR)
    report = land_locally(feed_config(), landed, tmp_path, NOW, new_generation=True, keep=3)
    Refusal("generation-keeps-landings", {"generation": 2, "kept": 3}).check(report.waiting)
    again = land_locally(feed_config(), landed, tmp_path, NOW, new_generation=True, keep=3)
    Refusal("generation-not-started", {"kept": 3}).check(again.waiting)
    write_rows(tmp_path, "hour-3", rows_of(3))
    assert land_locally(feed_config(), landed, tmp_path, NOW + HOUR).landings == (4,)
    assert all(row["x"] < 100 for row in log_rows(landed))


def test_a_changed_definition_begins_although_no_interval_is_complete(tmp_path):
    tables, before, after = (
        DeltaFeedTables(f"{tmp_path}/w"),
        *(feed_config(log={"value": v}) for v in (["x"], ["x", "got"])),
    )
    write_rows(tmp_path, "hour-0", rows_of(0))
    land_locally(before, tables, tmp_path, NOW)
    asked = {"new_generation": True, "keep": 1}
    assert land_locally(before, tables, tmp_path, NOW, **asked).waiting.code == "generation-not-started"
    report = land_locally(after, tables, tmp_path, NOW, **asked)
    nulls = ", where the new column got is null"
    Refusal("generation-keeps-landings", {"generation": 2, "kept": 1, "nulls": nulls}).check(report.waiting)
    write_rows(tmp_path, "hour-3", rows_of(3))
    assert land_locally(after, tables, tmp_path, NOW + HOUR).landings == (2,)
    assert [row["got"] is None for row in log_rows(tables)] == [row["landing"] == 1 for row in log_rows(tables)]


def test_a_new_generation_of_nothing_is_refused_and_the_landings_stay(tmp_path, landed):
    before = landings(landed)
    early = T0 - HOUR
    with refused("feed-nothing-due"):
        land_locally(feed_config(), landed, tmp_path, early, new_generation=True)
    assert landings(landed) == before
    write_rows(tmp_path, "hour-3", rows_of(3))
    assert land_locally(feed_config(), landed, tmp_path, NOW + HOUR).landings == (4,)


def test_what_cannot_be_kept_is_said(tmp_path, landed):
    with refused("kept-landings-out-of-range", landings=3):
        land_locally(feed_config(), landed, tmp_path, NOW, new_generation=True, keep=4)
    with refused("kept-landings-incompatible", changes="partitions"):
        land_locally(feed_config(partitions=4), landed, tmp_path, NOW, new_generation=True, keep=1)
    with refused("kept-landings-incompatible", changes="events.key"):
        land_locally(feed_config(log={"key": ["user"]}), landed, tmp_path, NOW, new_generation=True, keep=1)


def test_columns_may_come_with_a_generation_but_not_change_their_type(tmp_path, landed):
    land_locally(feed_config(log={"columns": {"y": "x"}}), landed, tmp_path, NOW, new_generation=True)
    rows = log_rows(landed)
    assert [row["x"] is None for row in rows] == [row["generation"] == 2 for row in rows]
    assert [row["y"] is None for row in rows] == [row["generation"] == 1 for row in rows]
    swapped = feed_config(log={"columns": {"x": "user", "user": "x"}})
    with refused(
        "log-column-type-changed",
        column="user",
        landed_type=containing("string"),
        type=containing("int64"),
        fix=containing("give the column another name (`columns"),
    ):
        land_locally(swapped, landed, tmp_path, NOW, new_generation=True)
    assert landings(landed)[-1]["generation"] == 2


class KilledError(Exception):
    """Stands for a kill."""


def die(step):
    if step.startswith("publish events"):
        raise KilledError


def test_a_new_generation_that_was_interrupted_is_published_not_started_again(tmp_path, landed):
    asked = {"new_generation": True}
    with pytest.raises(KilledError):
        land_locally(feed_config(partitions=5), landed, tmp_path, NOW, on_step=die, **asked)
    assert log_rows(landed, generation=2) == []
    again = land_locally(feed_config(partitions=5), landed, tmp_path, NOW, **asked)
    assert (again.generation, again.landings, again.rows, again.was_interrupted) == (2, (1, 2, 3), 15, True)
    assert len(log_rows(landed, generation=2)) == 15
    third = land_locally(feed_config(partitions=5), landed, tmp_path, NOW, **asked)
    assert (third.generation, third.was_interrupted) == (3, False)


def test_another_new_generation_than_the_interrupted_one_is_started(tmp_path, landed):
    with pytest.raises(KilledError):
        land_locally(feed_config(partitions=5), landed, tmp_path, NOW, on_step=die, new_generation=True)
    other = land_locally(feed_config(partitions=4), landed, tmp_path, NOW, new_generation=True)
    assert (other.generation, other.was_interrupted) == (3, False)
    assert len(log_rows(landed, generation=2)) == len(log_rows(landed, generation=3)) == 15
