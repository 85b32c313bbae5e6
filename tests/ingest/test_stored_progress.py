"""A feed's stored progress and the rows after it give what all rows give, wherever it was stored."""

from __future__ import annotations

from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from rewindow.contracts.staged_files import StagedFile
from rewindow.control.ingest.feed_progress import fold_progress, interval_ends, made_by, progress_lines
from rewindow.control.ingest.landings import (
    GENERATION,
    LANDING,
    PLAN,
    FeedDefinition,
    LandedRange,
    Landing,
    LogSchema,
    definition_as_json,
)
from rewindow.control.plan.job_fold import NOTE
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.planner import last_requested_epoch
from rewindow.control.plan.spec import RunRequest
from rewindow.control.plan.stored_rows import StoredFold, StoredRows
from rewindow.errors import SourceError
from rewindow.streams.record import TopicPartition
from rewindow.streams.serde.schema import Column
from rewindow.tables.shared.stored_feeds import Feeds, check_stored_feed, find_feed
from tests.control.ledgers import HOUR, an_attempt
from tests.refusals import refused

FILES, RANGES = TopicPartition("events", 0), TopicPartition("changes", 0)
TPS = (FILES, TopicPartition("events", 1), RANGES)

steps = st.lists(
    st.tuples(
        st.sampled_from(["land", "land", "land", "land", "die", "nothing", "generation"]),
        st.lists(st.integers(0, 3), min_size=3, max_size=3),
        st.lists(st.integers(0, 6), min_size=3, max_size=3),
        st.booleans(),
    ),
    max_size=14,
)


def schema() -> LogSchema:
    return LogSchema((Column("user", "string"),), (Column("value", "long"),), scalar_key=True, scalar_value=True)


class Script:
    """Writes the rows of a landing ledger. Topic ``events`` has files, ``changes`` is a log with source offsets."""

    def __init__(self, script) -> None:
        self.rows: list[LedgerRow] = []
        self.bodies: list[dict] = []
        self.generation = 0
        self.begin(0)
        for number, (kind, counts, released, is_odd) in enumerate(script):
            self.add(PLAN, {"attempt": asdict(an_attempt(f"attempt-{number}"))})
            if kind == "land":
                self.land(counts, released, is_odd=is_odd)
            elif kind == "nothing":
                self.add(NOTE, {"attempt": f"attempt-{number if is_odd else number - 1}"})
            elif kind == "generation":
                self.begin(min(released[0], len(self.bodies)))
                self.land(counts, released, is_odd=is_odd)

    def add(self, kind: str, body: dict) -> None:
        seq = len(self.rows) + 1
        self.rows.append(LedgerRow(seq, kind, body, 100 + seq, f"token-{seq}"))

    def begin(self, kept: int) -> None:
        self.generation += 1
        self.bodies = self.bodies[:kept]
        logs = {tp.topic: schema() for tp in TPS}
        definition = FeedDefinition("activity", self.generation, 2, logs, f"print-{self.generation}", kept)
        rebased = {"events": {"files": {"rebased": [kept]}}} if kept else {}
        more = {"declared": {"generation": self.generation}, "sources": {"events": "csv"}, "positions": rebased}
        self.add(GENERATION, {**definition_as_json(definition), **more})

    def land(self, counts, released, *, is_odd: bool) -> None:
        number = len(self.bodies) + 1
        before = {TopicPartition(*r[:2]): LandedRange(*r[2:]) for r in self.bodies[-1]["ranges"]} if self.bodies else {}
        ranges, files = {}, []
        for tp, count, more in zip(TPS, counts, released, strict=True):
            was = before.get(tp, LandedRange(0, 0, -1, 0))
            end = was.end + count
            ranges[tp] = LandedRange(
                was.end, end, number * HOUR, min(end, was.release + more), 3 if tp == RANGES else 0
            )
            if count and tp.topic == "events":
                stats = {
                    "numRecords": count,
                    "minValues": {"offset": was.end, "timestamp": 0},
                    "maxValues": {"offset": end - 1, "timestamp": number * HOUR},
                }
                path = f"{self.generation}/{tp.partition}/{number}.parquet"
                files.append(a_file(tp.partition, path, stats).as_json())
        interval = ((number - 1) * HOUR, number * HOUR)
        landing = Landing(number, self.generation, number * HOUR, ranges, interval, {"rows": sum(counts)})
        body = {
            **landing.as_json(),
            "time": number * HOUR + 1,
            "attempt": "a",
            "files": {"events": files} if files else {},
            "quarantine": {"events": [{"path": "q"}]} if is_odd else {},
            "positions": {"events": {"files": {f"file-{number}": [number]}}, "changes": {"version": number}},
            "flat": {"events": {"value": "1"}} if is_odd else {},
        }
        self.bodies.append(body)
        self.add(LANDING, body)


def a_file(partition: int, path: str, stats: dict) -> StagedFile:
    known = {"target": "log/events", "partition": partition, "path": path, "stats": stats}
    return StagedFile.from_json({**EMPTY, **known})


EMPTY = StagedFile("", 0, "", {}, 0, 0, "0" * 32, {}, "0" * 32).as_json()


def stored(rows: list[LedgerRow], at: int) -> StoredRows:
    """Return the rows, with what the first ``at`` of them give stored."""
    fold = StoredFold(at, rows[0].token, frozenset(), progress_lines(rows[:at]))
    return StoredRows(rows[at:], fold, lambda _fold: rows[:at])


def summed(rows, *, is_whole=False):
    return [
        (
            one.generation,
            max((body["landing"] for body in one.bodies), default=one.through),
            one.refused + sum(1 for body in one.bodies if body["quarantine"]),
        )
        for one in made_by(rows, is_whole=is_whole)
    ]


def feed_in(feeds: Feeds, rows):
    try:
        return feeds.find("activity", rows, "here")
    except SourceError:
        return None


@given(steps, st.data())
def test_stored_progress_and_later_rows_give_what_all_rows_give(script, data):
    rows = Script(script).rows
    at = data.draw(st.integers(1, len(rows)), label="stored after row")
    again = data.draw(st.integers(at, len(rows)), label="stored again after row")
    some = stored(rows, at)
    twice = StoredRows(
        rows[again:],
        StoredFold(again, rows[0].token, frozenset(), progress_lines(stored(rows[:again], at))),
        lambda _fold: rows[:again],
    )
    for known in (some, twice):
        assert fold_progress(known) == fold_progress(rows)
        assert fold_progress(known) == fold_progress(rows), "reading the progress does not change it"
        assert summed(known) == summed(rows) == summed(known, is_whole=True)
        assert find_feed("activity", known, "here") == find_feed("activity", rows, "here")
        check_stored_feed("activity", known)
        assert list(known) == rows
        assert known[0] == rows[0]
        assert known[-1] == rows[-1]
        for keep in range(len(Script(script).bodies) + 1):
            assert fold_progress(known, keep) == fold_progress(rows, keep)
    feed, feeds = find_feed("activity", rows, "here"), Feeds()
    assert feed_in(feeds, stored(rows[: again or 1], at)) == find_feed("activity", rows[:again], "here")
    assert feed_in(feeds, some) == feed
    assert [*interval_ends(feed_in(feeds, some))] == [*interval_ends(feed)]
    for end in range(len(feed.landings) + 2):
        request = RunRequest(until_ms=end * HOUR)
        assert last_requested_epoch(feed_in(feeds, some), request) == last_requested_epoch(feed, request)


@given(steps.filter(bool), st.data())
def test_wrong_stored_progress_is_found(script, data):
    rows = Script(script).rows
    at = data.draw(st.integers(1, len(rows)))
    lines = progress_lines(rows[:at])
    wrong = [line.replace('"seq":', '"seq":1') for line in lines]
    fold = StoredFold(at, rows[0].token, frozenset(), wrong)
    with refused("ledger-fold-wrong"):
        check_stored_feed("activity", StoredRows(rows[at:], fold, lambda _fold: rows[:at]))


def test_a_run_reads_the_last_landings_only(monkeypatch):
    rows = Script([("land", [1, 1, 1], [1, 1, 1], False)] * 60).rows
    known, read = stored(rows, len(rows) - 4), []
    loads = Landing.from_json
    monkeypatch.setattr(Landing, "from_json", classmethod(lambda _cls, data: read.append(data) or loads(data)))
    feed = find_feed("activity", known, "here")
    last = len(feed.landings)
    feed.records(range(last, last + 1), FILES)
    feed.spans(FILES, last - 1, last)
    last_requested_epoch(feed, RunRequest(until_ms=last * HOUR))
    assert len(read) <= 12
