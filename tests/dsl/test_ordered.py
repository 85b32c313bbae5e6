"""First, Last and Collect: nulls, types and restarts."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow import (
    Collect,
    Count,
    First,
    Last,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    until_window_closes,
)
from rewindow.dsl.operators.builtin_aggregates import Subtractable
from rewindow.streams.checkpoint import Checkpoint, TaskState
from rewindow.streams.nodes import SinkNode
from rewindow.streams.ordering import Event, events, rows_of
from rewindow.streams.record import row_class
from rewindow.streams.serde.schema import Column, row_shape
from rewindow.streams.serde.types_to_columns import bind_sink, bind_store, bound, log_shape
from rewindow.streams.task import Task
from rewindow.testing import TopologyTestDriver
from tests.properties.effort import examples
from tests.properties.test_typed_cuts import through_arrow
from tests.properties.told import told

COLUMNS = (Column("page", "string"), Column("ms", "long"), Column("ratio", "double"), Column("tags", "json"))
Row = row_class(tuple(column.name for column in COLUMNS))
LOGS = {"in": (log_shape((Column("user", "string"),), is_scalar=True), row_shape(COLUMNS))}
PARTS = {"first": First(), "last": Last(), "all": Collect(), "page": First("page"), "ms": Last("ms"), "n": Count()}


class Sale(NamedTuple):
    """A user's row class."""

    item: str
    price: float


WINDOWS = {
    "tumbling": TimeWindows.of("10ms", grace="5ms"),
    "sessions": SessionWindows.of("4ms", grace="5ms"),
    "sliding": SlidingWindows.of("6ms", grace="5ms"),
}


def topology(aggregate: Any, *, value: Any = None, windows: str = "tumbling") -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream = stream.map_values(lambda row: row, value=value) if value else stream
    table = stream.group_by_key().windowed_by(WINDOWS[windows]).aggregate(aggregate, store="s")
    table.to_stream().to("updates")
    table.suppress(until_window_closes(), name="closed").to_stream().to("finals")
    return builder.build()


def results(aggregate: Any, values: list[Any]) -> list[Any]:
    driver = TopologyTestDriver(topology(aggregate, value=Sale))
    for value in values:
        driver.pipe("in", "a", value, 0)
    return [record.value for record in driver.read("updates")]


def test_results() -> None:
    sales = [None, Sale("a", 1.0), None, Sale("b", 2.0)]
    assert results(First(), sales) == [None, sales[1], sales[1], sales[1]]
    assert results(Last("item"), sales) == [None, "a", "a", "b"]
    assert results(Collect("price"), sales) == [[], [1.0], [1.0], [1.0, 2.0]]
    assert results({"first": First("item"), "all": Collect()}, sales)[-1] == ("a", [sales[1], sales[3]])


@pytest.mark.parametrize(("aggregate", "merged"), [(First(), 1), (Last(), 3), (Collect(), [1, 2, 3])])
def test_merged_states_keep_their_order(aggregate: Any, merged: Any) -> None:
    def state(*values: int) -> Any:
        made = aggregate.start()
        for value in values:
            made = aggregate.add("k", value, made)
        return made

    assert aggregate.merge(state(1), state(2, 3)) == aggregate.merge(state(1, 2), state(3)) == merged
    assert aggregate.merge(state(), state(1)) == aggregate.merge(state(1), state()) == state(1)


def test_collect_can_subtract() -> None:
    state = [1, float("nan"), True, 1]
    assert Collect().subtract("k", 1, state) == [state[1], True, 1]
    assert len(Collect().subtract("k", float("nan"), state)) == 3
    assert Collect().subtract("k", None, state) == Collect().subtract("k", 7, state) == state
    assert not isinstance(First(), Subtractable), "the value before the first is not known"


def test_column_types() -> None:
    def columns(aggregate: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        built = topology(aggregate)
        sink = built.nodes["updates-sink"]
        assert isinstance(sink, SinkNode)
        state, result = bind_store(built.stores["s"], LOGS)[1], bind_sink(sink, LOGS)[1]
        return [tuple(c) for c in state.columns[:-1]], [tuple(c) for c in result.columns]

    whole = [tuple(column) for column in COLUMNS]
    assert columns(First()) == ([*whole, ("_is_null", "boolean")], whole)
    assert columns(Last("ratio")) == ([("value", "double")], [("value", "double")])
    assert columns(Collect("ms")) == ([("value", "json")], [("value", "json")])
    assert columns({"page": First("page"), "all": Collect()})[1] == [("page", "string"), ("all", "json")]


PAGES = st.none() | st.sampled_from(["a", "b"])
ROWS = st.none() | st.builds(Row, PAGES, st.none() | st.integers(0, 3), st.none() | st.sampled_from([0.5, 2.0]),
                             st.none() | st.lists(st.integers(0, 2), max_size=2))  # fmt: skip
EPOCHS = st.lists(st.lists(st.tuples(st.sampled_from("xy"), ROWS, st.integers(0, 40)), max_size=4), max_size=4)


def replayed(aggregate: Any, windows: str, epochs: list[list[Any]], *, is_cut: bool) -> Any:
    """Return all results. ``is_cut``: restore from typed columns between any two epochs."""
    (part,) = topology(aggregate, windows=windows).sub_topologies()
    shapes = {store.name: bind_store(store, LOGS) for store in part.stores}
    rows: dict[str, list[tuple[Any, Any]]] = {name: [] for name in shapes}
    sent: list[Any] = []

    def made(state: TaskState | None) -> Task:
        return Task(
            bound(part, LOGS), 0, writers=lambda sink: lambda record, _o, _n: sent.append((sink.topic, record)),
            checkpoint=Checkpoint(state or TaskState(), rows),
        )  # fmt: skip

    task, offset = made(None), 0
    for epoch in epochs:
        taken: list[Event] = list(events(0, [rows_of((offset + n, t, k, v) for n, (k, v, t) in enumerate(epoch))]))
        offset += len(epoch)
        task.replay(taken)
        task.end_epoch(max((t for *_, t in epoch), default=-1))
        if is_cut:
            for name, store in task.stores.items():
                rows[name] += through_arrow(*shapes[name], store.take_changes())
            task = made(TaskState.from_json(task.state().as_json()))
    return told(sent)


@pytest.mark.parametrize("aggregate", [First(), Last(), Collect(), Collect("ratio"), PARTS], ids=str)
@given(windows=st.sampled_from(sorted(WINDOWS)), epochs=EPOCHS)
@examples(40)
def test_a_restart_makes_no_difference(aggregate: Any, windows: str, epochs: list[list[Any]]) -> None:
    assert replayed(aggregate, windows, epochs, is_cut=True) == replayed(aggregate, windows, epochs, is_cut=False)


@pytest.mark.parametrize(("aggregate", "merged"), [(First(), 2), (Last(), 9), (Collect(), [2, 7, 9])])
def test_merged_sessions_are_combined_in_the_order_of_their_times(aggregate: Any, merged: Any) -> None:
    driver = TopologyTestDriver(topology(aggregate, value=int, windows="sessions"))
    for value, at in ((7, 7), (2, 2), (9, 4)):  # the record at 4 ms merges the sessions at 2 and 7
        driver.pipe("in", "a", value, at)
    assert driver.read("updates")[-1].value == merged
