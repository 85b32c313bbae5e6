"""L2 with the real codec: between any two epochs, checkpoints and outputs pass through Arrow columns, as in a run."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from rewindow import (
    JoinWindows,
    Processor,
    ProcessorContext,
    Record,
    StreamsBuilder,
    TimeWindows,
    Topology,
    key_value_store,
    versioned_store,
)
from rewindow.engine.worker.arrow_rows import arrow_schema, decode, encode, encode_values
from rewindow.errors import RewindowError
from rewindow.streams.checkpoint import Checkpoint, TaskState
from rewindow.streams.ordering import Event, events, rows_of
from rewindow.streams.serde.schema import Column
from rewindow.streams.serde.types_to_columns import bind_sink, bind_store, bound, log_shape
from rewindow.streams.task import Task
from tests.properties.effort import examples
from tests.properties.told import told


class Part(NamedTuple):
    """A row within a row."""

    number: int
    ratio: float | None


class Whole(NamedTuple):
    """A row of types that are hard to preserve."""

    price: Decimal | None
    ratio: float | None
    parts: list[Part]
    by_name: dict[str, Part]
    seen: Any = None

    def size(self) -> int:
        """Return the number of parts."""
        return len(self.parts)


RATIOS = st.none() | st.sampled_from([0.0, -0.0, 1.5, -2.25, float("inf")]) | st.integers(-3, 3)
PRICES = st.none() | st.sampled_from([Decimal(text) for text in ("1.5", "1.50", "-0", "0.000000000000000001", "1E+3")])
PARTS = st.builds(Part, st.integers(-3, 3), RATIOS)
WHOLES = st.builds(
    Whole,
    PRICES,
    RATIOS,
    st.lists(PARTS, max_size=2),
    st.dictionaries(st.sampled_from("ab"), PARTS, max_size=2),
    st.none() | st.lists(st.integers(0, 2) | st.text(max_size=1), max_size=2),
)
VALUES = {
    "whole": (Whole, WHOLES),
    "float": (float, RATIOS.filter(lambda ratio: ratio is not None)),
    "decimal": (Decimal, PRICES.filter(lambda price: price is not None)),
    "int": (int, st.sampled_from([1, 2, True, 1.5, 2**63])),
    "plain": (
        None,
        st.recursive(RATIOS | PRICES | st.text(max_size=1), lambda i: st.lists(i, max_size=2) | st.tuples(i)),
    ),
    "keyed": (None, st.dictionaries(st.sampled_from([1, "a", (1, None)]), RATIOS, max_size=3)),
}
KEYS = {
    "text": (str, st.sampled_from("ab")),
    "float": (float, st.sampled_from([0.0, -0.0, 1, 1.5])),
    "decimal": (Decimal, st.sampled_from([Decimal("1.5"), Decimal("1.50"), Decimal(0), Decimal("-0.0")])),
    "pair": (None, st.tuples(st.none() | st.sampled_from("ab"), st.sampled_from([1, 1, 1.0]))),
    "mixed": (None, st.sampled_from([1, 1, 1, True, 1.0])),
}


class Remembers(Processor):
    """Forwards what its store holds, and changes values that it read in place."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.store = context.store("kept")

    def process(self, record: Record) -> None:
        before = self.store.get(record.key)
        self.context.forward(Record(record.key, repr(told(before)) if before is not None else None))
        if isinstance(before, Whole):
            before.parts.append(Part(before.size(), 0.5))
            self.store.put(record.key, before)
            return
        if isinstance(before, list):
            before.append("changed")
            if record.timestamp % 2:
                return
        if record.value is None or record.value == "":
            self.store.delete(record.key)
        else:
            self.store.put(record.key, record.value)


def last(_key: Any, value: Any, state: list[Any]) -> list[Any]:
    state.append(value)
    del state[:-2]
    return state


def pair(one: Any, other: Any) -> str:
    return repr(told((one, other)))


def topology(key: Any, value: Any) -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    keep_functions = stream.process(
        Remembers, name="remembers", stores=[key_value_store("kept", key=key, value=value)], key=key, value=str
    )
    keep_functions.to("remembered")
    grouped = stream.group_by_key()
    grouped.aggregate(list, last, store="last", value=list[Any] if value is None else list[value]).to_stream().to(
        "last"
    )
    typed = stream.map_values(lambda one: one, value=value)
    typed.outer_join(stream, pair, JoinWindows.of("6ms", grace="3ms").after("-1ms"), name="pairs").to("pairs")
    table = typed.to_table(store=versioned_store("past", history="20ms"))
    stream.left_join(table, pair, name="then", grace="4ms").to("then")
    grouped.windowed_by(TimeWindows.of("10ms", grace="5ms")).count(store="counts").to_stream().to("counts")
    return builder.build()


def replayed(key: Any, value: Any, epochs: list[list[tuple[Any, Any, int]]], *, is_cut: bool) -> Any:
    """Return everything that was sent, and the rows of the stores at the end."""
    logs = {
        "in": (log_shape((Column("key", "json"),), is_scalar=True), log_shape((Column("v", "json"),), is_scalar=True))
    }
    (part,) = topology(key, value).sub_topologies()
    shapes = {store.name: bind_store(store, logs) for store in part.stores}
    sinks = {sink.topic: bind_sink(sink, logs) for sink in part.sinks}
    sent: dict[str, list[Record]] = {topic: [] for topic in sinks}
    rows: dict[str, list[tuple[Any, Any]]] = {name: [] for name in shapes}

    def made(state: TaskState | None) -> Task:
        return Task(
            bound(part, logs), 0, writers=lambda sink: lambda record, _o, _n: sent[sink.topic].append(record),
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
    for name, store in task.stores.items():
        rows[name] += through_arrow(*shapes[name], store.take_changes())
    task = made(TaskState.from_json(task.state().as_json()))
    columns = {
        topic: [
            [column.to_pylist() for column in encode_values(shape, [record[index] for record in records], topic)]
            for index, shape in enumerate(sinks[topic])
        ]
        for topic, records in sent.items()
    }
    return told(columns), {name: told(list(store.rows())) for name, store in task.stores.items()}


def through_arrow(key: Any, value: Any, changes: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return changes as a changelog returns them."""
    gone = (None,) * len(value.columns)
    encoded = [(*key.encode(k), *(gone if v is None else value.encode(v))) for k, v in changes]
    batch = encode(encoded, arrow_schema([*key.columns, *value.columns]), "changelog")
    width = len(key.columns)
    rows = batch.num_rows
    decoded = zip(decode(key, batch.columns[:width], rows), decode(value, batch.columns[width:], rows), strict=True)
    return [(k, None if before is None else v) for (k, v), (_, before) in zip(decoded, changes, strict=True)]


def outcome(*given: Any, is_cut: bool) -> Any:
    """Return the result of a replay, or the class of its error. The message may differ, because cuts can move the error."""
    try:
        return replayed(*given, is_cut=is_cut)
    except RewindowError as error:
        return type(error)


@examples(40)
@given(st.data(), st.sampled_from(sorted(KEYS)), st.sampled_from(sorted(VALUES)))
def test_a_cut_between_any_two_epochs_makes_no_difference(data: st.DataObject, key: str, value: str) -> None:
    (key_type, keys), (value_type, values) = KEYS[key], VALUES[value]
    record = st.tuples(keys, values, st.integers(0, 40))
    epochs = data.draw(st.lists(st.lists(record, max_size=5), min_size=1, max_size=4))
    whole = outcome(key_type, value_type, epochs, is_cut=False)
    assert outcome(key_type, value_type, epochs, is_cut=True) == whole


def test_so_it_is_with_equal_keys_of_other_texts() -> None:
    epochs: list[list[tuple[Any, Any, int]]] = [[(Decimal("1.5"), 1, 0)], [(Decimal("1.50"), 1, 0)]]
    whole = outcome(Decimal, int, epochs, is_cut=False)
    assert isinstance(whole, tuple)
    assert outcome(Decimal, int, epochs, is_cut=True) == whole


def test_so_it_is_with_a_value_that_is_changed_in_place() -> None:
    epochs = [[("a", [1], 0), ("a", [2], 1)], [("a", [3], 3)], [("a", [4], 5)]]
    whole = outcome(str, None, epochs, is_cut=False)
    assert isinstance(whole, tuple)
    assert outcome(str, None, epochs, is_cut=True) == whole
