"""Windows of every kind: cuts and layouts change nothing, and final results are sent once, equally in two ways."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from rewindow import (
    Collect,
    Count,
    EmitStrategy,
    KTable,
    Materialized,
    Mean,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Sum,
    TimeWindows,
    Topology,
    until_window_closes,
)
from rewindow.streams.metrics import LATE_RECORD_DROP
from rewindow.streams.settings import Semantics
from rewindow.testing import Epoch, LocalReplay
from rewindow.testing.strategies import epochs
from tests.properties.effort import examples

PARTITIONS = 2
LENGTHS, GRACES = st.integers(0, 25), st.sampled_from([0, 0, 1, 5, 30])
TIMES = st.sampled_from(["records", "watermark"])
KEPT = st.sampled_from([None, "1d"])


def windows() -> st.SearchStrategy[Any]:
    """Return windows of the kinds that close."""

    def made(kind: Any, length: int, grace: int) -> Any:
        return kind.of(f"{max(length, int(kind is TimeWindows))}ms", grace=f"{grace}ms")

    return st.builds(made, st.sampled_from([TimeWindows, SlidingWindows, SessionWindows]), LENGTHS, GRACES)


def aggregated(kind: Any, name: str, retention: str | None, *, on_close: bool) -> tuple[StreamsBuilder, KTable]:
    builder = StreamsBuilder()
    windowed: Any = builder.stream("in").group_by_key().windowed_by(kind)
    if on_close:
        windowed = windowed.emit_strategy(EmitStrategy.on_window_close())
    parts = {"n": Count(), "total": Sum(), "mean": Mean(), "all": Collect()}
    return builder, windowed.aggregate(parts, store=Materialized.as_(name, retention=retention))


def topology(kind: Any, word: str, retention: str | None = None) -> Topology:
    builder, table = aggregated(kind, "state", retention, on_close=word == "emit")
    (table.suppress(until_window_closes()) if word == "suppress" else table).to_stream().to("out")
    return builder.build()


def late_in(replay: LocalReplay) -> int:
    return sum(measured[1] for (_, _, name, _), measured in replay.metrics.items() if name == LATE_RECORD_DROP)


def sealed(given_epochs: list[Epoch]) -> list[Epoch]:
    return [*given_epochs, Epoch(watermark_ms=given_epochs[-1].watermark_ms, is_final=True)]


@given(epochs(["in"]), windows(), st.sampled_from(["update", "emit", "suppress"]), KEPT, TIMES)
@examples(60)
def test_cuts_make_no_difference(
    given_epochs: list[Epoch], kind: Any, word: str, retention: str | None, time: str
) -> None:
    results = []
    for cuts in ([len(given_epochs) + 1], [1] * (len(given_epochs) + 1)):
        replay = LocalReplay(
            topology(kind, word, retention), partitions=PARTITIONS, semantics=Semantics(stream_time_from=time)
        )
        waiting = sealed(given_epochs)
        for number in cuts:
            replay.run(waiting[:number])
            waiting = waiting[number:]
        results.append((replay.sent, replay.checkpoints(), replay.metrics))
    assert results[0] == results[1]


A_CLOSED_SESSION_IS_MERGED = [Epoch((("in", "a", 0, 0), ("in", "a", 0, 3), ("in", "a", 0, 1)))]


@given(epochs(["in"]), windows(), KEPT, TIMES)
@example(A_CLOSED_SESSION_IS_MERGED, SessionWindows.of("2ms", grace="0ms"), "1d", "records")
@examples(60)
def test_finals_come_once_and_both_ways_agree(
    given_epochs: list[Epoch], kind: Any, retention: str | None, time: str
) -> None:
    """Emit on close and suppress send the same results, which equal the last updates (D10, D11)."""
    sent, late = {}, {}
    for word in ("update", "emit", "suppress"):
        replay = LocalReplay(
            topology(kind, word, retention), partitions=PARTITIONS, semantics=Semantics(stream_time_from=time)
        )
        replay.run(sealed(given_epochs))
        sent[word] = [
            (one.partition, one.record.key, str(one.record.value), one.record.timestamp) for one in replay.sent
        ]
        late[word] = late_in(replay)
    assert Counter(sent["emit"]) == Counter(sent["suppress"])
    assert max(Counter(key for _, key, *_ in sent["emit"]).values(), default=1) == 1
    assert late["emit"] == late["suppress"]
    if isinstance(kind, TimeWindows) or retention:  # else the store of updates expires windows 1 ms earlier
        assert late["emit"] == late["update"]
    if not isinstance(kind, SessionWindows) and retention:
        last = {one[1]: one for one in sent["update"]}
        assert Counter(last.values()) == Counter(sent["emit"])


A_WATERMARK_CLOSES_A_SESSION = [
    Epoch((("in", "a", 0, 0),), watermark_ms=20),
    Epoch((("in", "a", 0, 1),), watermark_ms=20),
]


@given(epochs(["in"], max_ms=40), windows(), TIMES)
@example(A_WATERMARK_CLOSES_A_SESSION, SessionWindows.of("19ms", grace="0ms"), "watermark")
@examples(50)
def test_every_record_that_is_not_late_is_in_a_final_result(given_epochs: list[Epoch], kind: Any, time: str) -> None:
    """Tumbling windows and sessions count each record once, however far time jumps."""
    if isinstance(kind, SlidingWindows):
        return
    replay = LocalReplay(topology(kind, "emit"), partitions=PARTITIONS, semantics=Semantics(stream_time_from=time))
    replay.run(sealed(given_epochs))
    late = late_in(replay)
    taken = sum(one.record.value.n for one in replay.sent)
    assert taken + late == sum(len(epoch.records) for epoch in given_epochs)
