"""D22: if time follows the watermark, windows of idle keys close too, and no result is late for a window below."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from rewindow import JoinWindows, StreamsBuilder, Sum, TimeWindows, Topology, until_window_closes
from rewindow.streams.metrics import LATE_RECORD_DROP
from rewindow.streams.serde.key_bytes import partition_of
from rewindow.streams.settings import Semantics
from rewindow.testing import Epoch, LocalReplay
from rewindow.testing.strategies import epochs
from tests.properties.effort import examples

PARTITIONS = 2
BY_WATERMARK = Semantics(stream_time_from="watermark")
Final = tuple[str, int, int]
"""Key, window start, count."""


def one_level(size: int, grace: int) -> Topology:
    builder = StreamsBuilder()
    windows = TimeWindows.of(f"{size}ms", grace=f"{grace}ms")
    grouped = builder.stream("in").group_by_key().windowed_by(windows)
    grouped.count(store="counts").suppress(until_window_closes()).to_stream().to("finals")
    return builder.build()


def finals_by_definition(
    given_epochs: list[Epoch], size: int, grace: int, *, from_watermark: bool
) -> dict[int, list[tuple[int, Final]]]:
    """Return for each partition the final results that each epoch sends, in order."""
    sent: dict[int, list[tuple[int, Final]]] = {}
    for partition in range(PARTITIONS):
        counts: dict[tuple[int, str], int] = defaultdict(int)
        newest, clock, clock_of_updates = {}, -1, -1
        sent[partition] = []
        for number, epoch in enumerate(given_epochs):
            mine = [r for r in epoch.records if partition_of(r[1], PARTITIONS) == partition]
            for _, key, _, timestamp in mine:
                clock = max(clock, timestamp)
                start = timestamp // size * size
                if start + size + grace > clock:
                    counts[start, key] += 1
                    newest[start, key] = max(newest.get((start, key), -1), timestamp)
                    clock_of_updates = max(clock_of_updates, newest[start, key])
                    sent[partition] += closed(counts, clock_of_updates, size, grace, number)
            if from_watermark:
                clock = max(clock, epoch.watermark_ms)
                clock_of_updates = max(clock_of_updates, epoch.watermark_ms)
                sent[partition] += closed(counts, clock_of_updates, size, grace, number)
    return sent


def closed(
    counts: dict[tuple[int, str], int], clock: int, size: int, grace: int, epoch: int
) -> list[tuple[int, Final]]:
    """Remove and return the windows that the clock has closed, by window end and key."""
    over = sorted(window for window in counts if window[0] + size + grace <= clock)
    return [(epoch, (key, start, counts.pop((start, key)))) for start, key in over]


@given(epochs(["in"]), st.integers(1, 25), st.integers(0, 25), st.sampled_from(["records", "watermark"]))
@examples(100)
def test_finals_are_sent_when_their_window_is_over(given_epochs: list[Epoch], size: int, grace: int, time: str) -> None:
    replay = LocalReplay(one_level(size, grace), partitions=PARTITIONS, semantics=Semantics(stream_time_from=time))
    for epoch in given_epochs:
        replay.run([epoch])
    got: dict[int, list[tuple[int, Final]]] = {partition: [] for partition in range(PARTITIONS)}
    for sent in replay.sent:
        windowed = sent.record.key
        got[sent.partition].append((sent.epoch, (windowed.key, windowed.window.start_ms, sent.record.value)))
    assert got == finals_by_definition(given_epochs, size, grace, from_watermark=time == "watermark")


def two_levels(size: int, grace: int) -> Topology:
    """Sum windowed counts in larger windows: a window below a window, across a repartition."""
    builder = StreamsBuilder()
    (
        builder.stream("in")
        .group_by_key()
        .windowed_by(TimeWindows.of(f"{size}ms", grace=f"{grace}ms"))
        .count(store="small")
        .suppress(until_window_closes())
        .to_stream()
        .group_by(lambda _windowed, _count: "all", key=str)
        .windowed_by(TimeWindows.of(f"{3 * size}ms", grace=f"{size}ms"))
        .aggregate(Sum(), store="large")
        .suppress(until_window_closes())
        .to_stream()
        .to("finals")
    )
    return builder.build()


@given(epochs(["in"]), st.integers(1, 20), st.integers(0, 20))
@examples(60)
def test_a_window_below_a_window_sees_all_that_is_due_to_it(given_epochs: list[Epoch], size: int, grace: int) -> None:
    replay = LocalReplay(two_levels(size, grace), partitions=PARTITIONS, semantics=BY_WATERMARK)
    replay.run(given_epochs)
    replay.run([Epoch(watermark_ms=given_epochs[-1].watermark_ms, is_final=True)])
    late = {key[1]: counts[1] for key, counts in replay.metrics.items() if key[2] == LATE_RECORD_DROP}
    assert late.get("large", 0) == 0
    records = sum(len(epoch.records) for epoch in given_epochs)
    assert sum(sent.record.value for sent in replay.sent) == records - late.get("small", 0)


def pairs_by_window(before: int, after: int, grace: int) -> Topology:
    """Count the results of an outer join by window, across a repartition, with the join's longest delay as grace period."""
    builder = StreamsBuilder()
    windows = JoinWindows.of(f"{after}ms", grace=f"{grace}ms").before(f"{before}ms")
    joined = builder.stream("L").outer_join(builder.stream("R"), lambda one, other: (one, other), windows, name="pairs")
    joined.to("pairs")
    (
        joined.group_by(lambda _key, _pair: "all", key=str)
        .windowed_by(TimeWindows.of("10ms", grace=f"{windows.holds_ms}ms"))
        .count(store="counts")
        .suppress(until_window_closes())
        .to_stream()
        .to("finals")
    )
    return builder.build()


SPANS = st.integers(0, 12)


@given(
    st.lists(st.tuples(st.sampled_from("LR"), st.sampled_from("abc"), st.integers(0, 9)), max_size=25),
    SPANS,
    SPANS,
    SPANS,
)
@examples(80)
def test_a_window_below_a_join_sees_what_found_no_partner(
    steps: list[tuple[str, str, int]], before: int, after: int, grace: int
) -> None:
    """The records are in order, one per epoch, and each epoch is complete up to its record."""
    now, given_epochs = 0, []
    for number, (topic, key, later) in enumerate(steps):
        now += later
        given_epochs.append(Epoch(((topic, key, number, now),), now))
    replay = LocalReplay(pairs_by_window(before, after, grace), partitions=PARTITIONS, semantics=BY_WATERMARK)
    replay.run([*given_epochs, Epoch(watermark_ms=now, is_final=True)])
    assert not [key for key in replay.metrics if key[2] == LATE_RECORD_DROP]
    pairs = [sent.record.value for sent in replay.sent if sent.topic == "pairs"]
    counted = sum(sent.record.value for sent in replay.sent if sent.topic == "finals")
    assert counted == len(pairs)
    assert sorted({number for pair in pairs for number in pair if number is not None}) == list(range(len(steps)))
    lone = {number for pair in pairs if None in pair for number in pair if number is not None}
    assert not lone & {number for pair in pairs if None not in pair for number in pair}


def test_a_quiet_key_gets_its_final_from_the_watermark_only() -> None:
    epochs_given = [Epoch((("in", "a", 1, 3),), 8), Epoch((), 15)]
    by_records = LocalReplay(one_level(10, 5))
    by_records.run(epochs_given)
    assert by_records.sent == []
    by_watermark = LocalReplay(one_level(10, 5), semantics=BY_WATERMARK)
    by_watermark.run(epochs_given)
    assert [(sent.epoch, sent.record.value, sent.record.timestamp) for sent in by_watermark.sent] == [(1, 1, 3)]
