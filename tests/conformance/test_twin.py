"""The engine equals the naive twin on random scenarios, which may cover what the recorded ones miss."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests import oracle
from tests.conformance import drive, verdict
from tests.conformance.build import MissingError
from tests.conformance.outcome import Outcome, of_engine
from tests.conformance.scenario import Case
from tests.conformance.shapes import SHAPES
from tests.properties.effort import examples

IDS = st.sampled_from(["p", "q"])
SMALL = st.integers(0, 9)
PREDICATES = st.one_of(
    st.builds(lambda n: {"gt": n}, SMALL),
    st.builds(lambda m: {"mod": [m, 0]}, st.integers(2, 3)),
    st.builds(lambda n: {"not": {"lt": n}}, SMALL),
    st.just({"is_null": False}),
)


@st.composite
def actions(draw: st.DrawFn, *, on_records: bool, depth: int = 0) -> list[dict[str, Any]]:
    """Draw a script's actions. Only records make schedules: a punctuation that always made one would never end."""
    made = []
    for _ in range(draw(st.integers(1, 3))):
        words = [
            "forward",
            "forward_times",
            "store_count",
            "forward_count",
            "forward_store_all",
            "store_delete",
            "cancel",
        ]
        word = draw(st.sampled_from([*words, *(["schedule", "if"] if on_records and depth == 0 else [])]))
        action: dict[str, Any] = {"do": word}
        if word.startswith("forward"):
            action |= draw(
                st.sampled_from([{}, {}, {"ts_add": 7}, {"ts_set": 3}, {"key": "K"}, {"to": "m"}, {"ts_add": -5}])
            )
            action |= {"clear": True} if word == "forward_store_all" else {}
        elif word == "schedule":
            action |= draw(schedules())
        elif word == "cancel":
            action["id"] = draw(IDS)
        elif word == "if":
            then, otherwise = (draw(actions(on_records=True, depth=1)) for _ in range(2))
            action |= {"pred": draw(PREDICATES), "then": then, "else": otherwise}
        made.append(action)
    return made


@st.composite
def schedules(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a schedule."""
    type_ = draw(st.sampled_from(["STREAM_TIME", "WALL_CLOCK_TIME"]))
    made = {"do": "schedule", "id": draw(IDS), "type": type_, "interval": draw(st.integers(1, 20))}
    return made | draw(st.one_of(st.just({}), st.builds(lambda start: {"start": start}, st.integers(0, 40))))


@st.composite
def scripts(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw a processor and the two maps below it."""
    on_punctuate = {id_: draw(actions(on_records=False)) for id_ in ("p", "q") if draw(st.booleans())}
    script = {
        "name": "script",
        "op": "processor",
        "in": "both",
        "store": "counts",
        "on_init": draw(st.lists(schedules(), max_size=3)),
        "on_record": draw(actions(on_records=True)),
        "on_punctuate": on_punctuate,
    }
    maps = [{"name": name, "op": "map_values", "in": "script", "fn": {"append": f"-{name}"}} for name in ("m", "n")]
    return [script, *maps]


@st.composite
def windows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw an aggregate: with or without windows, a new key, and final results only."""
    nodes: list[dict[str, Any]] = [{"name": "m", "op": "filter", "in": "both", "pred": draw(PREDICATES)}]
    by = draw(st.sampled_from([None, {"key_prefix": 1}, {"value_mod": 2}]))
    grouped = {"op": "group_by", "by": by} if by else {"op": "group_by_key"}
    nodes.append({"name": "g", "in": "m", **grouped})
    fn = draw(st.sampled_from(["count", "sum", "min", "max", "first", "last", "concat"]))
    if not draw(st.booleans()):
        return [*nodes, {"name": "n", "op": "aggregate", "in": "g", "fn": fn}]
    size = draw(st.integers(1, 15))
    window = {
        "name": "w",
        "op": "window",
        "in": "g",
        "type": "tumbling",
        "size": size,
        "grace": draw(st.integers(0, 9)),
    }
    if draw(st.booleans()):
        window |= {"type": "hopping", "advance": draw(st.integers(1, size))}
    nodes += [window, {"name": "n", "op": "aggregate", "in": "w", "fn": fn}]
    if draw(st.booleans()):
        nodes.append({"name": "f", "op": "filter", "in": "n", "pred": {"not": {"eq": "1"}}})
    if draw(st.booleans()):
        nodes.append({"name": "s", "op": "suppress", "in": nodes[-1]["name"], "until": "window_closes", "buffer": {}})
    return nodes


def steps(*, nulls: bool) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Draw steps. ``nulls``: also null keys and values, for operators that define how to treat them."""
    key = st.sampled_from(["A", "AA", "B", *([None] if nulls else [])])
    value = st.one_of(st.none(), SMALL) if nulls else SMALL
    topic, timestamp = st.sampled_from(["x", "y"]), st.integers(0, 60)
    record = st.fixed_dictionaries({"topic": topic, "key": key, "value": value, "ts": timestamp})
    return st.lists(
        st.one_of(
            st.builds(lambda r: {"pipe": r["topic"], "key": r["key"], "value": r["value"], "ts": r["ts"]}, record),
            st.builds(lambda many: {"batch": many}, st.lists(record, min_size=1, max_size=4)),
            st.builds(lambda ms: {"advance_wall_clock": ms}, st.integers(0, 30)),
        ),
        max_size=8,
    )


SCRIPTED = st.tuples(scripts(), steps(nulls=False))
WINDOWED = st.tuples(windows(), steps(nulls=True))


def scenario(nodes: list[dict[str, Any]], taken: list[dict[str, Any]], wall_clock: int, idle: int) -> dict[str, Any]:
    last = nodes[-1]["name"]
    return {
        "name": "random",
        "config": {"wall_clock": wall_clock, "max_task_idle_ms": idle},
        "sources": [{"name": name, "kind": "stream", "value": "long"} for name in ("x", "y")],
        "nodes": [{"name": "both", "op": "merge", "in": ["x", "y"]}, *nodes],
        "sinks": [{"name": "out-m", "in": "m"}, {"name": "out", "in": last}],
        "steps": taken,
    }


@given(
    st.one_of(SCRIPTED, WINDOWED), st.integers(0, 50), st.sampled_from([0, -1, 10]), st.sampled_from(["whole", "cut"])
)
@examples(200)
def test_the_engine_gives_what_the_definition_gives(
    played_on: tuple[list[dict[str, Any]], list[dict[str, Any]]], wall_clock: int, idle: int, mode: str
) -> None:
    made = scenario(*played_on, wall_clock, idle)
    same_as_the_twin(made, mode)


COUNTED: list[dict[str, Any]] = [
    {"name": "g", "op": "group_by_key", "in": "m"},
    {"name": "n", "op": "aggregate", "in": "g", "fn": "count"},
    {"name": "t", "op": "to_stream", "in": "n"},
]


@given(
    steps(nulls=True), st.sampled_from(["both", "k"]), st.sampled_from([[], COUNTED]), st.sampled_from(["whole", "cut"])
)
@examples(60)
def test_a_repartition_loses_null_keys_here_and_in_the_definition(
    taken: list[dict[str, Any]], above: str, below: list[dict[str, Any]], mode: str
) -> None:
    rekeyed = {"name": "k", "op": "select_key", "in": "both", "by": {"value_mod": 3}}
    same_as_the_twin(scenario([rekeyed, {"name": "m", "op": "repartition", "in": above}, *below], taken, 0, 0), mode)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_operator_gives_what_its_definition_gives(shape: str) -> None:
    @given(SHAPES[shape])
    @examples(60)
    def check(made: dict[str, Any]) -> None:
        same_as_the_twin(made, "whole", "cut")

    check()


@pytest.mark.parametrize("shape", SHAPES)
def test_what_kafka_would_give_is_given_here_or_a_proven_deviation(shape: str) -> None:
    @given(SHAPES[shape].filter(lambda made: "stream_time_from" not in made["config"]))
    @examples(40)
    def check(made: dict[str, Any]) -> None:
        judged = judged_by_kafkas_rules(made)
        assert judged.status in (verdict.PASSED, verdict.DEVIATING), judged.reason

    check()


def test_a_step_that_fails_breaks_no_promise() -> None:
    """A suppress sends a final result and is then full. The result has not reached the aggregate behind the repartition."""
    suppress = {"op": "suppress", "until": "window_closes", "buffer": {"max_bytes": 60, "full": "shutdown"}}
    scenario = {
        "name": "full",
        "config": {"wall_clock": 0, "max_task_idle_ms": 0},
        "sources": [{"name": "x", "kind": "stream", "value": "long"}, {"name": "y", "kind": "stream", "value": "long"}],
        "nodes": [
            {"name": "m", "op": "merge", "in": ["x", "y"]},
            {"name": "g", "op": "group_by", "in": "m", "by": {"key_prefix": 1}},
            {"name": "w", "op": "window", "in": "g", "type": "hopping", "size": 6, "advance": 1, "grace": 0},
            {"name": "a", "op": "aggregate", "in": "w", "fn": "count", "retention": 70},
            {"name": "a-s", "in": "a", **suppress},
            {"name": "tg", "op": "group_by", "in": "a-s", "by": {"window_key": True}},
            {"name": "c", "op": "aggregate", "in": "tg", "fn": "sum"},
        ],
        "sinks": [{"name": f"out-{name}", "in": name} for name in ("a", "a-s", "c")],
        "steps": [{"pipe": "x", "key": "A", "value": 0, "ts": time} for time in (0, 6)],
    }
    assert judged_by_kafkas_rules(scenario).status == verdict.DEVIATING


def judged_by_kafkas_rules(made: dict[str, Any]) -> verdict.Verdict:
    """Return the verdict on a scenario, for which the twin with all of Kafka's rules takes the place of a recording."""
    kafka = oracle.play(made, oracle.Rules(frozenset(oracle.SWITCHES)))
    expected = {
        "steps": [{"out": sent} for sent in kafka.steps],
        "error": _error(kafka.error_step),
        "stores": {name: _sorted(rows) for name, rows in kafka.stores.items()},
    }
    return verdict.judge(Case("random", made, expected), cut=False)


def _error(step: int | None) -> dict[str, Any] | None:
    return None if step is None else {"phase": "build"} if step < 0 else {"phase": "step", "step": step}


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def order(row: dict[str, Any]) -> tuple[str, int]:
        key = row["key"]
        return (key["key"], key["start"]) if isinstance(key, dict) else (key, 0)

    return sorted(rows, key=order)


def same_as_the_twin(made: dict[str, Any], *modes: str) -> None:
    """Check that the engine, whole or cut, and the twin have the same outcome."""
    try:
        played = [drive.play(made, cut=mode == "cut") for mode in modes]
    except MissingError as missing:
        event(str(missing))
        return
    twin = oracle.play(made, oracle.Rules())
    given_by_twin = Outcome(twin.steps, twin.error_step, twin.stores, twin.init)
    for one in played:
        assert given_by_twin.difference(of_engine(one)) == "", one.message
