"""Which joins are vectorized, and what `explain` says of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rewindow import JoinWindows, KStream, StreamsBuilder, versioned_store
from rewindow.contracts.tasks import Execution
from rewindow.engine.worker.vectorized.choose_execution import describe_execution
from rewindow.streams.serde.schema import Column, Shape
from rewindow.streams.serde.types_to_columns import log_shape

TEXT, LONG = (
    log_shape((Column("user", "string"),), is_scalar=True),
    log_shape((Column("user", "long"),), is_scalar=True),
)
ROW = log_shape((Column("whole", "long"), Column("note", "string")), is_scalar=False)
JSON = log_shape((Column("whole", "long"), Column("free", "json")), is_scalar=False)
CLOSE = JoinWindows.of("5m", grace="1m")


def both(left: Any, right: Any) -> str:
    return f"{left} {right}"


def with_itself(stream: KStream) -> KStream:
    return stream.join(stream, both, CLOSE, name="close")


def explained(build: Callable[[StreamsBuilder], Any], others: tuple[Shape, Shape] = (TEXT, ROW), part: int = 0) -> str:
    builder = StreamsBuilder()
    build(builder).to("results")
    topology, logs = builder.build(), {"events": (TEXT, ROW), "others": others, "third": (TEXT, ROW)}
    return describe_execution(Execution.AUTO, topology, topology.sub_topologies()[part], logs, one_by_one="")


def table(builder: StreamsBuilder, **more: Any) -> Any:
    return builder.table("others", **{"store": "rows", **more})


VECTORIZED: dict[str, Callable[[StreamsBuilder], Any]] = {
    "streams": lambda b: b.stream("events").join(b.stream("others"), both, CLOSE, name="close"),
    "the right topic first": lambda b: b.stream("others").outer_join(b.stream("events"), both, CLOSE, name="close"),
    "a table": lambda b: b.stream("events").left_join(table(b), both, name="close"),
    "a stream as a table": lambda b: b.stream("events").join(
        b.stream("others").to_table(store="rows"), both, name="close"
    ),
    "two tables": lambda b: table(b).outer_join(b.table("events", store="more"), both, value=str).to_stream(),
    "functions around it": lambda b: (
        b.stream("events")
        .filter(lambda _, value: value.whole)
        .join(table(b), both, value=str)
        .map_values(len, value=int)
    ),
}


@pytest.mark.parametrize("build", VECTORIZED.values(), ids=VECTORIZED)
def test_explain_says_that_a_join_is_vectorized(build: Callable[[StreamsBuilder], Any]) -> None:
    text = explained(build)
    assert text.startswith("vectorized execution")
    assert "the joiner is called for each result" in text


def test_explain_says_where_functions_are_called() -> None:
    text = explained(
        lambda b: (
            b.stream("events")
            .filter(lambda _, value: value.whole, name="some")
            .join(table(b), both, value=str, name="close")
            .map_values(len, value=int, name="lengths")
        )
    )
    assert "some: Python functions, called record by record" in text
    assert "lengths: Python functions, called for each result" in text


REASONS: dict[str, tuple[Callable[[StreamsBuilder], Any], str]] = {
    "a self-join": (
        lambda b: with_itself(b.stream("events")),
        "events has 2 children",
    ),
    "two joins": (
        lambda b: b.stream("events").join(table(b), both, value=str).join(b.table("third", store="more"), both),
        "it has 2 joins",
    ),
    "a versioned table": (
        lambda b: b.stream("events").join(table(b, store=versioned_store("rows", history="1h")), both, name="close"),
        "the table of close is versioned",
    ),
    "a grace period": (
        lambda b: b.stream("events").join(
            table(b, store=versioned_store("rows", history="1h")), both, name="close", grace="1m"
        ),
        "close has a grace period",
    ),
    "a verb between table and join": (
        lambda b: b.stream("events").join(table(b).filter(lambda _, value: value.whole > 0), both, name="close"),
        "has verbs between its store and the join",
    ),
    "a table that is kept behind a verb": (
        lambda b: b.stream("events").join(
            table(b).filter(lambda _, value: value.whole > 0, store="big"), both, name="close"
        ),
        "the table of close is made by",
    ),
    "two tables whose joined rows are kept": (
        lambda b: table(b).join(b.table("events", store="more"), both, value=str, store="joined").to_stream(),
        "joined keeps its rows in a store",
    ),
    "a joined table that goes on as a table": (
        lambda b: table(b).join(b.table("events", store="more"), both, value=str).filter(lambda *_: True).to_stream(),
        "takes a join of two streams",
    ),
    "a joined table with a verb in front": (
        lambda b: table(b).filter(lambda *_: True).join(b.table("events", store="more"), both, value=str).to_stream(),
        "has verbs between its store and the join",
    ),
    "windows behind it": (
        lambda b: b.stream("events").join(table(b), both, value=str).group_by_key().count(store="counts").to_stream(),
        "takes a join of two streams",
    ),
}


@pytest.mark.parametrize(("build", "reason"), REASONS.values(), ids=REASONS)
def test_explain_says_why_a_join_runs_record_by_record(build: Callable[[StreamsBuilder], Any], reason: str) -> None:
    text = explained(build)
    assert text.startswith("record execution")
    assert reason in text


def test_values_that_code_may_change_are_joined_record_by_record() -> None:
    assert "contain JSON" in explained(VECTORIZED["a table"], (TEXT, JSON))


def test_keys_of_two_types_are_joined_record_by_record() -> None:
    assert "different types" in explained(VECTORIZED["streams"], (LONG, ROW))
