"""A worker packs exactly the requested rows, in offset order, whether or not a position contains the offset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rewindow.contracts.tasks import LogSpan
from rewindow.engine.worker.arrow_rows import arrow_schema
from rewindow.engine.worker.packing import LONG_BITS, Packing, Positions, packed, positions_of
from rewindow.streams.serde.schema import Column

SCHEMA = arrow_schema((Column("offset", "long"), Column("timestamp", "long"), Column("user", "string")))
HUGE = 2**LONG_BITS - 1


def delivered(rows: list[tuple[int, int, int]], positions: Positions) -> pa.RecordBatch:
    """Return rows, given as (generation, partition, offset), as Spark delivers them."""
    slices = [positions.slice_of(task, LogSpan(generation, 0, 0)) for generation, task, _ in rows]
    offsets = [offset for *_, offset in rows]
    columns: list[Any] = [slices, offsets]
    if positions.offset_bits:
        columns = [[(number << positions.offset_bits) | offset for number, offset in zip(slices, offsets, strict=True)]]
    texts = [f"{row}" for row in rows]
    arrays = [pa.array(column, pa.int64()) for column in [*columns, [7] * len(rows)]]
    arrays.append(pa.array([text.encode() for text in texts], pa.binary()))
    return pa.RecordBatch.from_arrays(arrays, names=[str(number) for number in range(len(arrays))])


@given(st.data(), st.sampled_from([0, 5, 2**31 + 3, 2**40, HUGE - 40]), st.sampled_from([[0], [1, 2, 9]]))
def test_exactly_the_requested_rows_are_packed(data: st.DataObject, start: int, generations: list[int]) -> None:
    tasks = data.draw(st.lists(st.integers(0, 20_000), min_size=1, max_size=3, unique=True), "tasks")
    spans = []
    for task in tasks:
        for generation in generations:
            first = data.draw(st.integers(0, 8), "first")
            spans.append((0, task, LogSpan(generation, first, first + 5, start)))
    positions = positions_of(spans, has_generations=generations != [0])
    # The last offset of all spans bounds what Spark delivers.
    last = max(span.last for *_, span in spans) + start
    every = [(g, t, o) for g in generations for t in tasks for o in range(start, last + 1)]
    order = data.draw(st.randoms(use_true_random=False), "order")
    order.shuffle(every)
    some = len(every) // 2
    batches = [delivered(part, positions) for part in (every[:some], every[some:])]
    packing = Packing(0, tuple(spans), SCHEMA, {}, positions)
    found = [
        (pack.task, offset, text)
        for pack in packed(packing, batches)
        for offset, text in zip(pack.rows["offset"].to_pylist(), pack.rows["user"].to_pylist(), strict=True)
    ]
    expected = [
        (task, offset, f"{(span.generation, task, offset + start)}")
        for _, task, span in spans
        for offset in range(span.first, span.last + 1)
    ]
    assert found == expected


def test_a_pack_states_its_first_and_last_offset() -> None:
    spans = [(3, 4, LogSpan(1, 10, 19))]
    positions = positions_of(spans, has_generations=True)
    batch = delivered([(1, 4, offset) for offset in range(10, 20)], positions)
    (pack,) = packed(Packing(0, tuple(spans), SCHEMA, {}, positions), [batch])
    assert (pack.group, pack.task, pack.first, pack.last) == (3, 4, 10, 19)
    assert np.array_equal(np.asarray(pack.rows["offset"]), np.arange(10, 20))


def test_an_offset_has_its_own_column_if_both_do_not_fit() -> None:
    def bits(last: int, task: int, *, first: int = 0) -> int:
        return positions_of([(0, task, LogSpan(0, first, last))], has_generations=False).offset_bits

    assert bits(2**40, 8) == 41
    assert bits(2**62 - 1, 1) == 62
    assert bits(2**62, 1) == 0
    assert bits(2**40, 8, first=-1) == 0
