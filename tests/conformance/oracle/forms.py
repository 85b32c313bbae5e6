"""Random scenarios that the first recordings do not have: cogroups, transformed tables, and windows in local time.

* ``calendar``: a window of ``steps`` times ``step`` units (``unit``) in a ``zone``. Kafka has the windows of
  `java/CalendarWindows.java`. Their size is that of the longest window, so the ends that Kafka shows are not compared (D25).

* ``cogroup``: ``in`` names grouped streams, ``fns`` has for each a ``tag`` and perhaps a predicate ``null_if``. A stream adds
  ``<tag><value>`` to a text, with a comma between parts; where ``null_if`` is true of a value, it makes the aggregate null. A
  ``window`` or an ``aggregate`` below has its usual fields.
* ``transform_values``: ``in`` names a table. The result is ``<key>=<value>``, null for null unless ``keeps_null``. With a
  ``store`` (key to long) it counts its calls by key and appends ``#<count>``. ``materialize`` keeps the results.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]
Graph = tuple[list[Json], list[str], dict[str, str]]
"""The nodes, the nodes that are sent to a sink, and the sources by name with their kind."""

GRACES = (0, 0, 1, 5, 12)
PREDICATES = ({"gt": 3}, {"mod": [2, 0]}, {"not": {"gt": 4}}, {"is_null": False})
FLUSH = 100_000
"""The timestamp of last records far ahead, which release what is held back."""


def cogroups(rng: random.Random) -> Graph:
    """Return a cogroup of two or three streams, some of them re-keyed: without windows or with any kind of them."""
    sources = ["x", "y", "z"][: rng.choice((2, 2, 3))]
    nodes: list[Json] = []
    groups = []
    for name in sources:
        if rng.random() < 0.2:
            by = rng.choice(({"key_prefix": 1}, {"value_mod": 2}))
            nodes.append({"name": f"g{name}", "op": "group_by", "in": name, "by": by})
        else:
            nodes.append({"name": f"g{name}", "op": "group_by_key", "in": name})
        groups.append(f"g{name}")
    if nodes[0]["op"] == "group_by_key" and rng.random() < 0.15:  # one stream with two functions
        nodes.append({"name": "gx2", "op": "group_by_key", "in": "x"})
        groups.insert(rng.randint(0, len(groups)), "gx2")
    fns: list[Json] = [{"tag": name} for name in groups]
    if rng.random() < 0.15:
        rng.choice(fns)["null_if"] = {"gt": 7}
    nodes.append({"name": "c", "op": "cogroup", "in": groups, "fns": fns})
    window = _window(rng)
    above = "c"
    if window is not None:
        nodes.append({"name": "w", "op": "window", "in": "c", **window})
        above = "w"
    kept = {"retention": rng.choice((70, 1000))} if window and "grace" in window and rng.random() < 0.2 else {}
    nodes.append({"name": "a", "op": "aggregate", "in": above, "fn": "concat", **kept})
    sinks = ["a"]
    if window is not None and "grace" in window and rng.random() < 0.5:
        nodes.append({"name": "s", "op": "suppress", "in": "a", "until": "window_closes", "buffer": {}})
        sinks.append("s")
    elif rng.random() < 0.4:
        limit = rng.choice((0, 3, 10))
        nodes.append({"name": "s", "op": "suppress", "in": "a", "until": "time_limit", "ms": limit, "buffer": {}})
        sinks.append("s")
    return nodes, sinks, dict.fromkeys(sources, "stream")


def transforms(rng: random.Random) -> Graph:
    """Return a table whose values are transformed, with a verb below that may need old values or look the results up."""
    kinds = {"x": rng.choice(("table", "stream"))}
    nodes: list[Json] = []
    above = "x"
    if kinds["x"] == "stream":
        nodes.append({"name": "g", "op": "group_by_key", "in": "x"})
        window = _window(rng) if rng.random() < 0.5 else None
        if window is not None:
            nodes.append({"name": "w", "op": "window", "in": "g", **window})
        nodes.append({"name": "a", "op": "aggregate", "in": "w" if window else "g", "fn": rng.choice(("count", "sum"))})
        above = "a"
    if rng.random() < 0.3:
        nodes.append(
            {"name": "f", "op": "filter", "in": above, "pred": rng.choice(PREDICATES[:3]), "materialize": False}
        )
        above = "f"
    is_keyed = not any(one["op"] == "window" for one in nodes)  # the oracle has no stores by windowed key
    materialize = is_keyed and rng.random() < 0.4
    node: Json = {"name": "t", "op": "transform_values", "in": above, "materialize": materialize}
    if rng.random() < 0.5:
        node["store"] = "calls"
    if rng.random() < 0.4:
        node["keeps_null"] = True
    nodes.append(node)
    below = rng.choice(("nothing", "filter", "map", "group", "suppress", "stream join", "table join", "table join"))
    if "join" in below and (not is_keyed or ("store" in node and not node["materialize"])):
        below = "group"
    if below == "filter":
        test = rng.choice(({"prefix": "A"}, {"is_null": False}, {"ne": "A=1"}))
        nodes.append(
            {"name": "n", "op": "filter", "in": "t", "pred": test, "materialize": is_keyed and rng.random() < 0.5}
        )
    elif below == "map":
        nodes.append({"name": "n", "op": "map_values", "in": "t", "fn": {"append": "!"}, "materialize": False})
    elif below == "group":
        nodes.append(
            {"name": "tg", "op": "group_by", "in": "t", "by": rng.choice(({"key_prefix": 1}, {"const": "all"}))}
        )
        nodes.append({"name": "n", "op": "aggregate", "in": "tg", "fn": rng.choice(("count", "concat"))})
    elif below == "suppress":
        nodes.append(
            {"name": "n", "op": "suppress", "in": "t", "until": "time_limit", "ms": rng.choice((0, 5)), "buffer": {}}
        )
    elif below == "stream join":
        kinds["y"] = "stream"
        how = rng.choice(("inner", "left"))
        nodes.append({"name": "n", "op": "stream_table_join", "in": ["y", "t"], "how": how})
    elif below == "table join":
        kinds["y"] = "table"
        pair = rng.choice((["t", "y"], ["y", "t"]))
        how = rng.choice(("inner", "left", "outer"))
        nodes.append({"name": "n", "op": "table_table_join", "in": pair, "how": how, "materialize": rng.random() < 0.5})
    return nodes, ["t"] if below == "nothing" else ["t", "n"], kinds


CALENDARS = (
    ("m", 30, 1),
    ("m", 30, 2),
    ("h", 6, 1),
    ("h", 1, 1),
    ("d", 1, 1),
    ("d", 1, 2),
    ("w", 1, 1),
    ("mo", 1, 1),
    ("y", 1, 1),
)
"""Unit, step and number of steps."""
CLOCK_CHANGES = {
    "Europe/Berlin": (1_269_738_000_000, 1_288_486_800_000),
    "Australia/Lord_Howe": (1_286_033_400_000, 1_270_306_800_000),
    "America/St_Johns": (1_268_537_460_000, 1_289_097_060_000),
    "Pacific/Apia": (1_325_239_200_000, 1_301_752_800_000),
    "Asia/Kathmandu": (504_901_800_000,),
}
"""For each zone, instants at which its clock changed."""


def calendars(rng: random.Random) -> Graph:
    """Return an aggregate of windows in local time, with or without a suppress."""
    unit, step, steps = rng.choice(CALENDARS)
    window = {"type": "calendar", "unit": unit, "step": step, "steps": steps, "zone": rng.choice([*CLOCK_CHANGES])}
    grace = rng.choice((0, 0, 600_000, 3_600_000, 90_000_000))
    nodes: list[Json] = [
        {"name": "g", "op": "group_by_key", "in": "x"},
        {"name": "w", "op": "window", "in": "g", **window, "grace": grace},
        {"name": "a", "op": "aggregate", "in": "w", "fn": rng.choice(("count", "sum", "concat"))},
    ]
    if rng.random() < 0.6:
        nodes.append({"name": "s", "op": "suppress", "in": "a", "until": "window_closes", "buffer": {}})
    return nodes, ["a", *(["s"] if len(nodes) > 3 else [])], {"x": "stream"}


FORMS: dict[str, Callable[[random.Random], Graph]] = {
    "calendar": calendars,
    "cogroup": cogroups,
    "transform_values": transforms,
}


def fresh(form: str, seed: int, count: int) -> Iterator[Json]:
    """Yield new scenarios of a form. The same seed gives the same ones."""
    rng = random.Random(f"{form} {seed}")
    for number in range(count):
        nodes, sinks, kinds = FORMS[form](rng)
        yield {
            "name": f"rand_{form}_{seed}_{number:03}",
            "config": {"wall_clock": 0},
            "sources": [{"name": name, "kind": kind, "value": "long"} for name, kind in kinds.items()],
            "nodes": nodes,
            "sinks": [{"name": f"out-{name}", "in": name} for name in sinks],
            "steps": _near_changes(rng, nodes) if form == "calendar" else _steps(rng, list(kinds)),
        }


def _window(rng: random.Random) -> Json | None:
    grace = rng.choice(GRACES)
    size = rng.choice((6, 10, 15))
    return rng.choice(
        (
            None,
            {"type": "tumbling", "size": size, "grace": grace},
            {"type": "hopping", "size": size, "advance": rng.choice((2, 3, 5)), "grace": grace},
            {"type": "sliding", "diff": rng.choice((1, 4, 10)), "grace": grace},
            {"type": "session", "gap": rng.choice((1, 3, 5, 10)), "grace": grace},
            {"type": "session", "gap": rng.choice((1, 3, 5, 10)), "grace": grace},
            {"type": "unlimited", "start": rng.choice((0, 7))},
        )
    )


def _steps(rng: random.Random, topics: list[str]) -> list[Json]:
    """Return steps of one or several records. Time advances in small steps, and some records are late."""
    now = rng.randint(0, 8)
    steps: list[Json] = []
    for _ in range(rng.randint(6, 16)):
        records = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            now += rng.choice((0, 0, 1, 1, 2, 3, 7, 12, 30))
            late = rng.choice((0, 0, 0, 0, 1, 2, 5, 6, 10, 15, 40))
            key = rng.choice(("A", "A", "A", "B", "AA", None if rng.random() < 0.3 else "B"))
            value = None if rng.random() < 0.1 else rng.randint(0, 9)
            records.append({"topic": rng.choice(topics), "key": key, "value": value, "ts": max(0, now - late)})
        steps.append({"batch": records} if len(records) > 1 else piped(records[0]))
    if rng.random() < 0.6:
        steps += [piped({"topic": topic, "key": "Z", "value": 1, "ts": FLUSH}) for topic in topics]
    return steps


def _near_changes(rng: random.Random, nodes: list[Json]) -> list[Json]:
    """Return records around the clock changes of the zone, some of them late, and a last one that closes all windows."""
    window = next(node for node in nodes if node["op"] == "window")
    now = rng.choice(CLOCK_CHANGES[window["zone"]]) - rng.choice((0, 1, 3_600_000, 40 * 3_600_000))
    steps = []
    for _ in range(rng.randint(6, 20)):
        now += rng.choice((0, 1, 600_000, 1_800_000, 3_600_000, 3_599_999, 20 * 3_600_000, 40 * 86_400_000))
        late = rng.choice((0, 0, 0, 1, 1_800_000, 3_600_000, 30 * 3_600_000))
        record = {"topic": "x", "key": rng.choice(("A", "B", None)), "value": rng.randint(0, 9), "ts": now - late}
        steps.append(piped(record))
    return [*steps, piped({"topic": "x", "key": "Z", "value": 1, "ts": now + 3 * 366 * 86_400_000})]


def piped(record: Json) -> Json:
    """Return the step that delivers one record."""
    return {"pipe": record["topic"], "key": record["key"], "value": record["value"], "ts": record["ts"]}
