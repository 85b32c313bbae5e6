"""Prove with the naive twin by which decisions (D-numbers) a scenario deviates from Kafka.

A scenario deviates by a set of numbers if the twin gives Kafka's recorded result with these switches at Kafka's rule, and the
engine's result with all switches at ours. The smallest such set counts, in the order of `oracle.SWITCHES`. Sets of ties only
are tried first, because ties also decide the order inside a step that deviates for another reason. The engine's rows must also
hold what each number promises (`tests.conformance.claims`), which does not depend on the twin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from tests import oracle
from tests.conformance import claims, drive
from tests.conformance.outcome import Outcome, of_engine, of_record, of_twin, unordered
from tests.conformance.played import Played, before_failure
from tests.conformance.scenario import Case

LAW_1 = "L1"
"""A tie between records. L1 is a law, not a numbered decision, so a scenario that it alone explains passes."""

TIES = frozenset({"D6", LAW_1})
OURS: frozenset[str] = frozenset()


def proven_deviation(case: Case, played: Played) -> str:
    """Return the numbers by which a case deviates, such as ``D2`` or ``D2+D6``, or an empty text if nothing is proven."""
    if of_twin(case, OURS).difference(of_engine(played)):
        return ""
    record = of_record(case)
    numbers = concerned(case.scenario)
    ties = [number for number in numbers if number in TIES]
    for switches in (*_smallest_first(ties), *_smallest_first(numbers)):
        if _explains(case, record, frozenset(switches)):
            return "+".join(switches)
    return ""


def broken_claim(case: Case, number: str) -> str:
    """Describe a row of the engine's that contradicts what one of these numbers promises, or return an empty text."""
    if case.mode == "partition_group":
        return ""
    scenario = claims.observed(case.scenario)
    played = drive.play(scenario, cut=False)
    steps = before_failure(played.steps, played.error)
    return next((said for one in number.split("+") if (said := claims.broken(scenario, steps, one))), "")


def concerned(scenario: Mapping[str, Any]) -> list[str]:
    """Return the switches that can affect a scenario."""
    if scenario.get("mode") == "partition_group":
        return ["D16", LAW_1]
    nodes = scenario["nodes"]
    words = {node["op"] for node in nodes}
    windows = {node["type"] for node in nodes if node["op"] == "window"}
    is_concerned = {
        "D2": "processor" in words,
        "D6": "processor" in words,
        "D10": bool(windows & {"session", "sliding"}) or "cogroup" in words,
        "D11": any(node.get("emit") == "window_close" for node in nodes),
        "D12": any(node["op"] == "stream_stream_join" and node["how"] != "inner" for node in nodes),
        "D13": bool(words & {"aggregate", "suppress", "table_table_join"}),
        "D16": "max_task_idle_ms" in scenario.get("config", {}),
        # Sources that nothing connects are sub-topologies of their own, as those that a repartition separates.
        "D21": bool(words & {"select_key", "group_by", "processor", "repartition"} or len(scenario["sources"]) > 1)
        and scenario.get("config", {}).get("tasks") != "separate",
        "D24": any("max_bytes" in node.get("buffer", {}) for node in nodes),
        LAW_1: len(scenario["sources"]) > 1 or bool(words & {"select_key", "group_by", "processor"}),
    }
    return [number for number in oracle.SWITCHES if is_concerned[number]]


def _smallest_first(numbers: list[str]) -> Iterator[tuple[str, ...]]:
    for size in range(1, len(numbers) + 1):
        yield from combinations(numbers, size)


def _explains(case: Case, record: Outcome, switches: frozenset[str]) -> bool:
    """Return whether the twin gives the recorded result with these switches.

    The order inside a step may differ, if it is right as soon as the switches of ties are at Kafka's rule too.
    """
    if switches <= TIES:
        return not of_twin(case, switches).difference(record)
    given = of_twin(case, switches)
    as_sets = [unordered(step) for step in given.steps] == [unordered(step) for step in record.steps]
    return as_sets and not of_twin(case, switches | TIES).difference(record)
