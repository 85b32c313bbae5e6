"""What rewindow promises where it deviates from Kafka, checked on the rows alone.

The naive twin proves which decision a difference follows from. It might share a misunderstanding with the engine, so each
decision that changes rows also has a claim that needs no operator, no store and no clock:

* D10: after a final result of a session or sliding window, nothing about that window is sent any more. Only a session whose store
  has a longer retention may still grow into another one, as in Kafka, and withdraws the update that it was.
* D12: the rows of a join of two streams follow from the list of its records.
* D13: an aggregate of a table equals the aggregate of the rows that the table has sent.

A claim covers the nodes to which it applies (a join whose inputs are topics, for example). D21 has no claim: played with a task
for each sub-topology, the real Kafka gives rewindow's rows (`tests.conformance.oracle`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rewindow.streams.record import Window, Windowed
from tests.oracle.repartitions import MAKES_TABLE
from tests.oracle.vocabulary import key_selector, text_of

Json = Mapping[str, Any]
Rows = list[dict[str, Any]]


def observed(scenario: Json) -> dict[str, Any]:
    """Return the scenario with a sink for each table and join that has none, because the claims compare their rows."""
    known = _sinks(scenario)
    tables = [source["name"] for source in scenario["sources"] if source["kind"] == "table"]
    tables += [node["name"] for node in scenario["nodes"] if node["op"] in (*MAKES_TABLE, "stream_stream_join")]
    more = [{"name": f"observed-{name}", "in": name} for name in tables if name not in known]
    return {**scenario, "sinks": [*scenario["sinks"], *more]}


def broken(scenario: Json, steps: list[Rows], number: str) -> str:
    """Describe the first row that contradicts the claim of a decision, or return an empty text."""
    return next(CLAIMS[number](scenario, steps), "") if number in CLAIMS else ""


def finals_change(scenario: Json, steps: list[Rows]) -> Iterator[str]:
    """Yield the windows of which something is sent after their final result."""
    nodes = {node["name"]: node for node in scenario["nodes"]}
    sinks = _sinks(scenario)
    for node in scenario["nodes"]:
        aggregate = nodes.get(node["in"]) if isinstance(node["in"], str) else None
        if node.get("until") != "window_closes" or aggregate is None or aggregate["op"] != "aggregate":
            continue
        final: set[Any] = set()
        may_grow = "retention" in aggregate and nodes[aggregate["in"]].get("type") == "session"
        for number, row in _rows(steps, sinks.get(node["name"]), sinks.get(aggregate["name"])):
            window = _key(row["key"])
            is_withdrawn = may_grow and row["value"] is None and row["sink"] != sinks.get(node["name"])
            if window in final and not is_withdrawn:
                yield f"step {number}: {text_of(window)} was final, and {row} follows"
            if row["sink"] == sinks.get(node["name"]):
                final.add(window)


def joins_differ(scenario: Json, steps: list[Rows]) -> Iterator[str]:
    """Yield the steps whose rows are not those that the definition of a join gives."""
    sources = {source["name"]: source["kind"] for source in scenario["sources"]}
    sinks = _sinks(scenario)
    records = [(step["pipe"], step["key"], step["value"], step["ts"]) for step in scenario["steps"] if "pipe" in step]
    config = scenario.get("config", {})
    is_in_order = config.get("max_task_idle_ms", 0) <= 0 and config.get("partitions", 1) == 1
    if len(records) < len(scenario["steps"]) or not is_in_order:
        return
    for node in scenario["nodes"]:
        if node["op"] != "stream_stream_join" or node["name"] not in sinks:
            continue
        left, right = node["in"]
        if left == right or not {left, right} <= sources.keys():
            continue
        expected = _joined(node, [record for record in records if record[0] in (left, right)])
        taken = 0
        for number, step in enumerate(steps[: len(records)]):
            want = []
            if records[number][0] in (left, right):
                want, taken = expected[taken], taken + 1
            got = [(row["key"], row["value"], row["ts"]) for row in step if row["sink"] == sinks[node["name"]]]
            if sorted(map(str, got)) != sorted(map(str, want)):
                yield f"step {number}: {node['name']} should send {want}, not {got}"


def _joined(node: Json, records: list[tuple[str, Any, Any, int]]) -> list[list[tuple[Any, str, int]]]:
    """Return the rows of a join by record, as it is defined: pairs, and nulls for records that stay alone."""
    before, after, grace = node["before"], node["after"], node["grace"]
    kept = before + after + grace
    is_left = [topic == node["in"][0] for topic, *_ in records]
    is_outer = {True: node["how"] != "inner", False: node["how"] == "outer"}
    clock = [max(at for *_, at in records[: number + 1]) for number in range(len(records))]
    sent: list[list[tuple[Any, str, int]]] = [[] for _ in records]

    def text(one: int, other: int | None) -> str:
        pair = (records[one][2], None if other is None else records[other][2])
        return "|".join(map(text_of, pair if is_left[one] else pair[::-1]))

    def matches(one: int, other: int) -> bool:
        """Whether the records are of both sides, have a key, and are close enough."""
        if is_left[one] == is_left[other] or records[one][1] != records[other][1] or records[one][1] is None:
            return False
        if records[one][2] is None or records[other][2] is None:
            return False
        distance = records[other][3] - records[one][3]
        return -before <= distance <= after if is_left[one] else -after <= distance <= before

    def is_retained(other: int, number: int) -> bool:
        """Whether the store of a side still has a record when a later one arrives: it counts from its side's newest."""
        stored = [n for n in range(number) if is_left[n] == is_left[other] and None not in records[n][1:3]]
        return records[other][3] > max(records[n][3] for n in stored) - kept

    for number, (_, key, value, at) in enumerate(records):
        if value is None or (key is None and not is_outer[is_left[number]]):
            continue
        if key is None:
            sent[number].append((key, text(number, None), at))
            continue
        partners = [n for n in range(number) if matches(number, n) and is_retained(n, number)]
        sent[number] += [(key, text(number, n), max(at, records[n][3])) for n in partners]
        if is_outer[is_left[number]] and not partners:
            last = at + (after if is_left[number] else before) + grace
            over = next((n for n in range(number, len(records)) if clock[n] > last), len(records))
            later = [n for n in range(number + 1, over) if matches(number, n) and is_retained(number, n)]
            if not later and over < len(records):
                sent[over].append((key, text(number, None), at))
    return sent


def aggregates_differ(scenario: Json, steps: list[Rows]) -> Iterator[str]:
    """Yield the groups whose count or sum is not that of the rows that the grouped table has sent."""
    nodes = {node["name"]: node for node in scenario["nodes"]}
    tables = {s["name"] for s in scenario["sources"] if s["kind"] == "table"} | {
        node["name"] for node in scenario["nodes"] if node["op"] in ("aggregate", "suppress", "to_table")
    }
    sinks = _sinks(scenario)
    for node in scenario["nodes"]:
        group = nodes.get(node["in"]) if isinstance(node["in"], str) else None
        if node["op"] != "aggregate" or node["fn"] not in ("count", "sum") or group is None:
            continue
        if group["op"] != "group_by" or group["in"] not in tables or not {group["in"], node["name"]} <= sinks.keys():
            continue
        table: dict[Any, Any] = {}
        sums: dict[Any, Any] = {}
        by, is_count = key_selector(group["by"]), node["fn"] == "count"
        for number, step in enumerate(steps):
            for row in (row for row in step if row["sink"] == sinks[group["in"]]):
                table[_key(row["key"])] = row["value"]
            sums.update({row["key"]: row["value"] for row in step if row["sink"] == sinks[node["name"]]})
            want: dict[Any, int] = {}
            for key, value in table.items():
                if value is not None and (to := by(key, value)) is not None:
                    want[to] = want.get(to, 0) + (1 if is_count else value)
            if different := {to for to in want.keys() | sums.keys() if want.get(to, 0) != (sums.get(to) or 0)}:
                yield f"step {number}: {node['name']} of {sorted(different)} is {sums}, its table's rows give {want}"


def _sinks(scenario: Json) -> dict[str, str]:
    return {sink["in"]: sink["name"] for sink in scenario["sinks"]}


def _rows(steps: list[Rows], *sinks: str | None) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, step in enumerate(steps):
        yield from ((number, row) for row in step if row["sink"] in sinks)


def _key(key: Any) -> Any:
    return Windowed(key["key"], Window(key["start"], key["end"])) if isinstance(key, dict) else key


CLAIMS = {"D10": finals_change, "D12": joins_differ, "D13": aggregates_differ}
"""The claim of each decision that has one."""
