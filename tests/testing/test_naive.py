"""The naive twin in cases that no recording covers: what Kafka does, and what rewindow does instead."""

from __future__ import annotations

from typing import Any

import pytest

from tests import oracle

Step = tuple[str, str | None, str, int]
"""Topic, key, value, timestamp."""
Sent = list[list[tuple[str, Any, int]]]
"""By step: key (a window's key has its window), value, timestamp."""


def windows(emit: str, **window: Any) -> list[dict[str, Any]]:
    return [
        {"name": "g", "op": "group_by_key", "in": "in"},
        {"name": "w", "op": "window", "in": "g", "emit": emit, **window},
        {"name": "out", "op": "aggregate", "in": "w", "fn": "count"},
    ]


def left_join(grace: int) -> list[dict[str, Any]]:
    return [
        {
            "name": "out",
            "op": "stream_stream_join",
            "in": ["L", "R"],
            "how": "left",
            "before": 10,
            "after": 10,
            "grace": grace,
        }
    ]


SUPPRESSED_GROUP = [
    {"name": "s", "op": "suppress", "in": "in", "until": "time_limit", "ms": 2, "buffer": {}},
    {"name": "g", "op": "group_by", "in": "s", "by": {"const": "all"}},
    {"name": "out", "op": "aggregate", "in": "g", "fn": "concat"},
]
COUNT_OF_COUNTS = [
    {"name": "g", "op": "group_by_key", "in": "in"},
    {"name": "c", "op": "aggregate", "in": "g", "fn": "count"},
    {"name": "g2", "op": "group_by", "in": "c", "by": {"const": "all"}},
    {"name": "out", "op": "aggregate", "in": "g2", "fn": "count"},
]
TUMBLING = windows("window_close", type="tumbling", size=10, grace=0)
SESSIONS = windows("window_close", type="session", gap=5, grace=0)


def play(nodes: list[dict[str, Any]], steps: list[Step], switches: set[str], **config: Any) -> Sent:
    kinds = {"in": "table" if nodes is SUPPRESSED_GROUP else "stream", "L": "stream", "R": "stream"}
    topics = dict.fromkeys(topic for topic, *_ in steps) | ({} if steps[0][0] == "in" else {"L": None, "R": None})
    scenario = {
        "config": config,
        "sources": [{"name": topic, "kind": kinds[topic], "value": "string"} for topic in sorted(topics)],
        "nodes": nodes,
        "sinks": [{"name": "o", "in": "out"}],
        "steps": [{"pipe": topic, "key": key, "value": value, "ts": at} for topic, key, value, at in steps],
    }
    result = oracle.play(scenario, oracle.Rules(frozenset(switches)))
    return [[(_key(one["key"]), one["value"], one["ts"]) for one in step] for step in result.steps]


def _key(key: Any) -> str:
    return f"{key['key']}[{key['start']},{key['end']}]" if isinstance(key, dict) else key


def at(*times: int, key: str = "a") -> list[Step]:
    return [("in", key, "v", time) for time in times]


@pytest.mark.parametrize(
    ("store", "first"), [("rocksdb", [[("a[0,10]", 1, 2)], [("a[10,20]", 1, 10)]]), ("in_memory", [[], []])]
)
def test_emit_on_close_loses_windows_in_kafka(store: str, first: Sent) -> None:
    steps = at(2, 10, 20, 29, 41)
    assert play(TUMBLING, steps, {"D11"}, store=store) == [[], *first, [], []]
    assert play(TUMBLING, steps, set(), store=store) == [
        [],
        [("a[0,10]", 1, 2)],
        [("a[10,20]", 1, 10)],
        [],
        [("a[20,30]", 2, 29)],
    ]


def test_a_jump_of_time_loses_sessions_in_kafka() -> None:
    steps = [*at(0), *at(6, 1_000_000, key="b"), *at(2_000_000, key="c")]
    assert play(SESSIONS, steps, {"D11"}) == [[], [("a[0,0]", 1, 0)], [], []]
    assert play(SESSIONS, steps, set())[2:] == [[("b[6,6]", 1, 6)], [("b[1000000,1000000]", 1, 1_000_000)]]


def test_a_group_below_a_suppress_gets_back_what_it_was_given() -> None:
    steps: list[Step] = [
        ("in", "A", "v1", 0),
        ("in", "B", "x", 2),
        ("in", "A", "v2", 3),
        ("in", "A", "v3", 4),
        ("in", "C", "z", 10),
    ]
    assert play(SUPPRESSED_GROUP, steps, {"D13"})[-1] == [("all", "+v1+x-v2+v3", 4)]
    assert play(SUPPRESSED_GROUP, steps, set())[-1] == [("all", "+v1+x-v1+v3", 4)]


def test_a_count_of_counts_counts() -> None:
    steps = [*at(0), *at(1, key="b"), *at(2), *at(3, key="c")]
    assert [sent[0][1] for sent in play(COUNT_OF_COUNTS, steps, {"D13"})] == [1, 1, 1, 1]
    assert [sent[0][1] for sent in play(COUNT_OF_COUNTS, steps, set())] == [1, 2, 2, 3]


def test_a_record_without_a_partner_is_sent_once_and_in_time() -> None:
    late: list[Step] = [("L", "z", "z", 20), ("L", "k", "a", 9), ("R", "k", "x", 9)]
    assert play(left_join(5), late, {"D12"}) == [[], [("k", "a|null", 9)], [("k", "a|x", 9)]]
    assert play(left_join(5), late, set()) == [[], [], [("k", "a|x", 9)]]
    steps: list[Step] = [("L", f"k{n}", f"{n}", time) for n, time in enumerate((0, 5, 8, 12, 16, 18, 19))]
    assert [len(sent) for sent in play(left_join(0), steps, {"D12"})] == [0, 0, 0, 1, 0, 0, 2]
    assert [len(sent) for sent in play(left_join(0), steps, set())] == [0, 0, 0, 1, 1, 0, 1]


def test_an_invalid_topology_ends_a_scenario_before_it_starts() -> None:
    short = [*TUMBLING[:2], {**TUMBLING[2], "retention": 5}]
    scenario = {"sources": [{"name": "in", "kind": "stream"}], "nodes": short, "sinks": [], "steps": []}
    assert oracle.play(scenario, oracle.Rules()).error_step == -1
    with pytest.raises(oracle.NotCoveredError):
        oracle.play({**scenario, "nodes": [{"name": "x", "op": "nothing", "in": "in"}]}, oracle.Rules())
