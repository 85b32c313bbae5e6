"""Suppress on random tables: neither cuts nor a spilling buffer change the results, and updates of a key keep their order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import (
    BufferConfig,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    max_bytes,
    max_records,
    unbounded,
    until_time_limit,
    until_window_closes,
)
from rewindow.engine.worker.sqlite_spill import SqliteSpill
from rewindow.streams.settings import Semantics
from rewindow.streams.state.spill import OpenSpill
from rewindow.testing import Epoch, LocalReplay
from rewindow.testing.local_task import LocalTask, MemorySpill
from tests.properties.effort import examples

KEYS = st.sampled_from(["A", "AA", "B", "C", "D", "é"])
RECORDS = st.tuples(st.just("in"), KEYS, st.none() | st.integers(0, 99), st.integers(0, 60))
EPOCHS = st.lists(st.lists(RECORDS, max_size=8).map(tuple), min_size=1, max_size=5)
BOUNDS = st.one_of(
    st.just(unbounded()),
    st.integers(0, 4).map(max_records),
    st.integers(0, 200).map(max_bytes),
    st.tuples(st.integers(0, 4), st.integers(0, 200)).map(lambda two: max_records(two[0]).with_max_bytes(two[1])),
)
TIMES = st.sampled_from(["first", "latest", "window_start"])
LIMITS = st.builds(lambda ms, time: ("limit", f"{ms}ms", time), st.integers(0, 20), TIMES)
PLANS = st.one_of(LIMITS, st.just(("closes", 0, "first")))


def topology(plan: tuple[str, int, str], buffer: BufferConfig) -> Topology:
    """Suppress windowed counts and, for limits that do not need windows, a table of values."""
    kind, limit, time = plan
    builder = StreamsBuilder()
    stream = builder.stream("in")
    windows = TimeWindows.of("10ms", grace="4ms").advance_by("5ms")
    counts = stream.filter(lambda _key, value: value is not None).group_by_key().windowed_by(windows).count(store="n")
    wanted: Suppressed = (
        until_window_closes(buffer) if kind == "closes" else until_time_limit(limit, buffer, buffer_time=time)
    )
    counts.suppress(wanted, name="held-counts").to_stream().to("counts")
    if kind == "limit" and time != "window_start":
        stream.to_table(store="values").suppress(wanted, name="held-values").to_stream().to("values")
    return builder.build()


def replayed(made: Topology, epochs: list[Any], cuts: list[int], time_from: str = "records") -> LocalReplay:
    replay = LocalReplay(made, partitions=2, semantics=Semantics(stream_time_from=time_from))
    watermark, given_epochs = -1, []
    for records in epochs:
        watermark = max(watermark, *(record[3] for record in records), 0)
        given_epochs.append(Epoch(records, watermark))
    given_epochs.append(Epoch(watermark_ms=watermark, is_final=True))
    bounds = [0, *sorted({cut for cut in cuts if 0 < cut < len(given_epochs)}), len(given_epochs)]
    for start, end in pairwise(bounds):
        replay.run(given_epochs[start:end])
    return replay


@given(PLANS, BOUNDS, EPOCHS, st.lists(st.integers(1, 5)), st.sampled_from(["records", "watermark"]))
@examples(150)
def test_runs_make_no_difference(
    plan: tuple[str, int, str], bound: BufferConfig, epochs: list[Any], cuts: list[int], time_from: str
) -> None:
    buffer = bound.spill_to_disk_when_full() if plan[0] == "closes" else bound
    whole, cut = (replayed(topology(plan, buffer), epochs, where, time_from) for where in ([], cuts))
    assert whole.sent == cut.sent
    assert whole.checkpoints() == cut.checkpoints()
    assert whole.metrics == cut.metrics
    assert whole.dropped == cut.dropped


@pytest.mark.parametrize("spill", [MemorySpill, SqliteSpill])
@given(PLANS, BOUNDS, EPOCHS, st.lists(st.integers(1, 5)))
@examples(100)
def test_a_buffer_on_disk_gives_what_one_in_memory_gives(
    spill: OpenSpill, plan: tuple[str, int, str], bound: BufferConfig, epochs: list[Any], cuts: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LocalTask.__init__.__kwdefaults__, "spill", spill)
        on_disk = replayed(topology(plan, bound.spill_to_disk_when_full()), epochs, cuts)
    in_memory = replayed(topology(plan, unbounded()), epochs, [])
    assert on_disk.sent == in_memory.sent
    assert on_disk.checkpoints() == in_memory.checkpoints()
    assert on_disk.metrics == in_memory.metrics


@given(st.integers(0, 4), st.integers(0, 20), EPOCHS)
@examples(100)
def test_a_bound_holds_after_every_record(records: int, limit: int, epochs: list[Any]) -> None:
    made = topology(("limit", f"{limit}ms", "first"), max_records(records))
    replay = LocalReplay(made)
    for epoch in epochs:
        for record in epoch:
            replay.run([Epoch((record,))])
            assert all(len(replay.task(0, 0).stores[name]) <= records for name in ("held-counts", "held-values"))


@given(LIMITS, BOUNDS, EPOCHS)
@examples(100)
def test_the_last_word_on_each_key_is_the_tables(
    plan: tuple[str, int, str], bound: BufferConfig, epochs: list[Any]
) -> None:
    replay = replayed(topology(plan, bound), epochs, [])
    said: dict[Any, Any] = {}
    for sent in replay.sent:
        said[sent.topic, sent.record.key] = sent.record.value
    kept = {
        (topic, key): stamped.value
        for topic, store in (("values", "values"),)
        for partition in range(2)
        if store in replay.task(0, partition).stores
        for key, stamped in replay.task(0, partition).stores[store].rows()
    }
    told = {metric_key: value for metric_key, value in said.items() if metric_key[0] == "values" and value is not None}
    assert told == kept
