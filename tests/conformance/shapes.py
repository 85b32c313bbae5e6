"""Random scenarios over all operators, similar to the recorded ones: small windows, few keys, ties, late records."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from rewindow.streams.record import MAX_MS
from tests.conformance.oracle.choices import choices
from tests.conformance.oracle.forms import cogroups, transforms

Json = dict[str, Any]

GRACES = st.sampled_from([0, 0, 1, 5, 12, 50])
PREDICATES = st.sampled_from(
    [
        {"gt": 3},
        {"lt": 6},
        {"mod": [2, 0]},
        {"mod": [3, 1]},
        {"not": {"gt": 4}},
        {"not": {"eq": "4"}},
        {"is_null": False},
    ]
)
FUNCTIONS = st.sampled_from(["count", "sum", "min", "max", "first", "last", "concat"])
FLUSH = 100_000
"""The timestamp of a last record far ahead, which releases what is held back. Most recordings end with one."""


def windows() -> st.SearchStrategy[Json]:
    """Return window nodes of every kind."""
    sized = st.one_of(
        st.builds(lambda size: {"type": "tumbling", "size": size}, st.sampled_from([1, 5, 10, 16])),
        st.builds(
            lambda size, advance: {"type": "hopping", "size": size, "advance": min(size, advance)},
            st.sampled_from([6, 10, 12, 15]),
            st.sampled_from([1, 2, 3, 4, 5, 12]),
        ),
        st.builds(lambda diff: {"type": "sliding", "diff": diff}, st.sampled_from([1, 4, 10])),
        st.builds(lambda gap: {"type": "session", "gap": gap}, st.sampled_from([0, 1, 3, 5, 10])),
    )
    return st.builds(lambda one, grace: {"op": "window", "in": "g", **one, "grace": grace}, sized, GRACES)


def buffers(*, is_strict: bool) -> st.SearchStrategy[Json]:
    """Return buffer limits of a suppress."""
    full = st.just("shutdown") if is_strict else st.sampled_from(["emit", "emit", "shutdown"])
    bounds = st.one_of(
        st.builds(lambda n: {"max_records": n}, st.integers(0, 5)),
        st.builds(lambda n: {"max_bytes": n}, st.sampled_from([60, 70, 120, 140, 200, 400])),
        st.builds(lambda n, b: {"max_records": n, "max_bytes": b}, st.integers(1, 4), st.sampled_from([70, 120])),
    )
    return st.one_of(st.just({}), st.builds(lambda bound, then: {**bound, "full": then}, bounds, full))


@st.composite
def suppresses(draw: st.DrawFn, above: str, *, is_windowed: bool) -> Json:
    """Draw a suppress below a table."""
    node = {"name": f"{above}-s", "op": "suppress", "in": above}
    if is_windowed and draw(st.booleans()):
        return {**node, "until": "window_closes", "buffer": draw(buffers(is_strict=True))}
    limit = draw(st.sampled_from([0, 1, 3, 5, 10, 25]))
    return {**node, "until": "time_limit", "ms": limit, "buffer": draw(buffers(is_strict=False))}


@st.composite
def windowed(draw: st.DrawFn) -> Json:
    """Draw windowed aggregates, sometimes with a suppress and an aggregate of their results."""
    nodes: list[Json] = [{"name": "m", "op": "merge", "in": ["x", "y"]}]
    by = draw(st.sampled_from([None, None, {"key_prefix": 1}, {"value_mod": 2}]))
    nodes.append(
        {"name": "g", "op": "group_by", "in": "m", "by": by} if by else {"name": "g", "op": "group_by_key", "in": "x"}
    )
    unlimited = {"op": "window", "in": "g", "type": "unlimited", "start": draw(st.sampled_from([0, 7]))}
    window = draw(st.one_of(windows(), windows(), windows(), st.just(unlimited)))
    is_final = window["type"] != "unlimited" and draw(st.integers(0, 3)) == 0
    nodes.append({"name": "w", **window, **({"emit": "window_close"} if is_final else {})})
    is_kept = window["type"] != "unlimited" and draw(st.integers(0, 4)) == 0
    kept = {"retention": draw(st.sampled_from([70, 1000, 86_400_000]))} if is_kept else {}
    fn = draw(FUNCTIONS)
    nodes.append({"name": "a", "op": "aggregate", "in": "w", "fn": fn, **kept})
    last = "a"
    if fn != "concat" and draw(st.integers(0, 3)) == 0:
        nodes.append({"name": "f", "op": "filter", "in": "a", "pred": draw(PREDICATES), "materialize": False})
        last = "f"
    if not is_final and draw(st.booleans()):
        nodes.append(draw(suppresses(last, is_windowed=True)))
        last = nodes[-1]["name"]
    sinks = ["a"] if last == "a" else ["a", last]
    if draw(st.integers(0, 2)) == 0:
        nodes += draw(counts_of(last, fn))
        sinks.append(nodes[-1]["name"])
    return _scenario(draw, nodes, sinks, {"x": "stream", "y": "stream"})


@st.composite
def counts_of(draw: st.DrawFn, last: str, fn: str) -> list[Json]:
    """Draw an aggregate of a windowed table's results by key without window: of the table, or of its stream."""
    word = "count" if fn == "concat" else "sum"
    if draw(st.booleans()):
        return [
            {"name": "tg", "op": "group_by", "in": last, "by": {"window_key": True}},
            {"name": "c", "op": "aggregate", "in": "tg", "fn": word},
        ]
    nodes: list[Json] = [
        {"name": "st", "op": "to_stream", "in": last},
        {"name": "k", "op": "select_key", "in": "st", "by": {"window_key": True}},
        {"name": "g2", "op": "group_by_key", "in": "k"},
    ]
    if draw(st.booleans()):
        return [*nodes, {"name": "c", "op": "aggregate", "in": "g2", "fn": word}]
    nodes.append({**draw(windows()), "name": "w2", "in": "g2"})
    nodes.append({"name": "c", "op": "aggregate", "in": "w2", "fn": word})
    return [*nodes, {"name": "c-s", "op": "suppress", "in": "c", "until": "window_closes", "buffer": {}}]


@st.composite
def tables(draw: st.DrawFn) -> Json:
    """Draw a chain of table verbs below a table or a stream."""
    kind = draw(st.sampled_from(["table", "stream"]))
    nodes: list[Json] = [] if kind == "table" else [{"name": "t", "op": "to_table", "in": "x"}]
    last, sinks = "x" if kind == "table" else "t", []
    for number in range(draw(st.integers(1, 3))):
        name, word = f"n{number}", draw(st.sampled_from(["filter", "map", "group", "suppress"]))
        materialize = draw(st.booleans())
        if word == "filter":
            nodes.append(
                {"name": name, "op": "filter", "in": last, "pred": draw(PREDICATES), "materialize": materialize}
            )
        elif word == "map":
            fn = draw(st.sampled_from([{"add": 3}, {"mul": 2}, {"null_if": {"gt": 6}}]))
            nodes.append({"name": name, "op": "map_values", "in": last, "fn": fn, "materialize": materialize})
        elif word == "group":
            by = draw(st.sampled_from([{"value_mod": 2}, {"value_mod": 3}, {"key_prefix": 1}, {"const": "all"}]))
            nodes.append({"name": f"{name}g", "op": "group_by", "in": last, "by": by})
            nodes.append(
                {"name": name, "op": "aggregate", "in": f"{name}g", "fn": draw(st.sampled_from(["count", "sum"]))}
            )
        else:
            nodes.append({**draw(suppresses(last, is_windowed=False)), "name": name})
        last = name
        sinks.append(name)
    if draw(st.integers(0, 3)) == 0:
        nodes.append({"name": "tg", "op": "group_by", "in": last, "by": {"key_prefix": 1}})
        nodes.append({"name": "trace", "op": "aggregate", "in": "tg", "fn": "concat"})
        sinks.append("trace")
    return _scenario(draw, nodes, sinks, {"x": kind})


@st.composite
def stream_joins(draw: st.DrawFn) -> Json:
    """Draw a join of two streams, sometimes counted by window."""
    before, after = draw(st.sampled_from([(6, 6), (5, 5), (0, 10), (10, 0), (3, 1), (1, 3), (0, 0), (10, -2)]))
    how = draw(st.sampled_from(["inner", "left", "outer"]))
    nodes: list[Json] = []
    left = "x"
    if draw(st.integers(0, 4)) == 0:
        nodes.append({"name": "k", "op": "select_key", "in": "x", "by": {"key_prefix": 1}})
        left = "k"
    join = {"op": "stream_stream_join", "how": how, "before": before, "after": after, "grace": draw(GRACES)}
    nodes.append({"name": "j", "in": [left, "y"], **join})
    sinks = ["j"]
    if draw(st.integers(0, 2)) == 0:
        nodes += [{"name": "g", "op": "group_by_key", "in": "j"}, {"name": "w", **draw(windows())}]
        nodes.append({"name": "a", "op": "aggregate", "in": "w", "fn": draw(st.sampled_from(["count", "concat"]))})
        sinks.append("a")
    return _scenario(draw, nodes, sinks, {"x": "stream", "y": "stream"})


@st.composite
def lookups(draw: st.DrawFn) -> Json:
    """Draw a join of a stream with a table, or of two tables, which may be filtered, aggregated or suppressed."""
    how_many = draw(st.sampled_from(["stream_table_join", "table_table_join"]))
    nodes: list[Json] = []
    kinds = {"x": "stream" if how_many == "stream_table_join" else "table", "y": "table"}
    inputs = ["x", "y"]
    for side in range(1 if kinds["x"] == "stream" else 0, 2):
        word = draw(st.sampled_from(["as it is", "filter", "aggregate", "suppress"]))
        name = f"{inputs[side]}-{word}"
        if word == "filter":
            nodes.append(
                {
                    "name": name,
                    "op": "filter",
                    "in": inputs[side],
                    "pred": draw(PREDICATES),
                    "materialize": draw(st.booleans()),
                }
            )
        elif word == "aggregate":
            kinds[inputs[side]] = "stream"
            nodes.append({"name": f"{name}-g", "op": "group_by_key", "in": inputs[side]})
            nodes.append({"name": name, "op": "aggregate", "in": f"{name}-g", "fn": draw(FUNCTIONS)})
        elif word == "suppress":
            nodes.append({**draw(suppresses(inputs[side], is_windowed=False)), "name": name})
        inputs[side] = name if word != "as it is" else inputs[side]
    hows = ["inner", "left"] if how_many == "stream_table_join" else ["inner", "left", "outer"]
    nodes.append({"name": "j", "op": how_many, "in": inputs, "how": draw(st.sampled_from(hows))})
    sinks = ["j"]
    if how_many == "table_table_join":
        nodes[-1]["materialize"] = draw(st.booleans())
        if draw(st.booleans()):
            nodes.append(draw(suppresses("j", is_windowed=False)))
            sinks.append(nodes[-1]["name"])
        if draw(st.integers(0, 2)) == 0:
            nodes.append({"name": "tg", "op": "group_by", "in": nodes[-1]["name"], "by": {"key_prefix": 1}})
            nodes.append({"name": "trace", "op": "aggregate", "in": "tg", "fn": "concat"})
            sinks.append("trace")
    return _scenario(draw, nodes, sinks, kinds)


@st.composite
def foreign_keys(draw: st.DrawFn) -> Json:
    """Draw a foreign-key join. Its right table has keys that values name, or it is a topic, whose rows may be deleted."""
    moves = draw(st.booleans())
    nodes: list[Json] = []
    if moves:
        nodes.append({"name": "k", "op": "select_key", "in": "y", "by": {"value_mod": 3}})
        nodes.append({"name": "r", "op": "to_table", "in": "k"})
    by = {"value_mod": 3} if moves else draw(st.sampled_from([{"const": "A"}, {"key_prefix": 1}]))
    how = draw(st.sampled_from(["inner", "left"]))
    nodes.append({"name": "j", "op": "foreign_key_join", "in": ["x", "r" if moves else "y"], "how": how, "by": by})
    sinks = ["j"]
    if draw(st.booleans()):
        nodes.append({"name": "tg", "op": "group_by", "in": "j", "by": {"key_prefix": 1}})
        nodes.append({"name": "trace", "op": "aggregate", "in": "tg", "fn": "concat"})
        sinks.append("trace")
    made = _scenario(draw, nodes, sinks, {"x": "table", "y": "stream" if moves else "table"})
    made["config"].pop("max_task_idle_ms", None)  # the twin does not know the topics for which the join would wait
    return made


@st.composite
def cogrouped(draw: st.DrawFn) -> Json:
    """Draw a cogroup of several streams, as the oracle makes them."""
    nodes, sinks, kinds = cogroups(draw(st.randoms()))
    return _scenario(draw, nodes, sinks, kinds)


@st.composite
def transformed(draw: st.DrawFn) -> Json:
    """Draw a table whose values are transformed, as the oracle makes them."""
    nodes, sinks, kinds = transforms(draw(st.randoms()))
    return _scenario(draw, nodes, sinks, kinds)


def _scenario(draw: st.DrawFn, nodes: list[Json], sinks: list[str], sources: dict[str, str]) -> Json:
    config: Json = {"wall_clock": 0, "max_task_idle_ms": draw(st.sampled_from([0, 0, -1, 10]))}
    has_watermarks = draw(st.integers(0, 2)) == 0
    if has_watermarks:
        config = {"wall_clock": 0, "stream_time_from": "watermark"}
    return {
        "name": "random",
        "config": config,
        "sources": [{"name": name, "kind": kind, "value": "long"} for name, kind in sources.items()],
        "nodes": nodes,
        "sinks": [{"name": f"out-{name}", "in": name} for name in sinks],
        "steps": draw(steps(list(sources), has_watermarks=has_watermarks)),
    }


@st.composite
def steps(draw: st.DrawFn, topics: list[str], *, has_watermarks: bool) -> list[Json]:
    """Draw steps of one or several records. Time advances in small steps, and some records are late."""
    now, watermark = draw(st.integers(0, 8)), 0
    made: list[Json] = []
    key = st.sampled_from(["A", "A", "A", "B", "B", "C", "AA", None])
    value = st.one_of(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.none())
    leap = st.sampled_from([0, 0, 1, 1, 2, 3, 5, 7, 12, 30])
    for _ in range(draw(st.integers(1, 14))):
        size = draw(st.sampled_from([1, 1, 1, 1, 2, 3, 0]))
        if size == 0 and has_watermarks:
            watermark = max(watermark, now + draw(st.sampled_from([-10, -3, 0, 1, 8, 20])))
            made.append({"watermark": watermark})
            continue
        if size == 0:
            made.append({"advance_wall_clock": draw(st.sampled_from([1, 10, 50]))})
            continue
        records = []
        for _ in range(size):
            now += draw(leap)
            late = draw(st.sampled_from([0, 0, 0, 1, 2, 5, 6, 10, 15]))
            records.append(
                {
                    "topic": draw(st.sampled_from(topics)),
                    "key": draw(key),
                    "value": draw(value),
                    "ts": max(0, now - late),
                }
            )
        made.append({"batch": records} if size > 1 else _piped(records[0]))
    if has_watermarks and draw(st.booleans()):
        made.append({"watermark": MAX_MS})
    elif draw(st.booleans()):
        made += [_piped({"topic": topic, "key": "Z", "value": 1, "ts": FLUSH}) for topic in topics]
    return made


def _piped(record: Json) -> Json:
    return {"pipe": record["topic"], "key": record["key"], "value": record["value"], "ts": record["ts"]}


SHAPES = {
    "windowed": windowed(),
    "tables": tables(),
    "stream joins": stream_joins(),
    "lookups": lookups(),
    "foreign keys": foreign_keys(),
    "cogroups": cogrouped(),
    "transforms": transformed(),
    "choices": st.integers(0, 1_000_000).map(lambda seed: next(choices(seed, 1))),
}
