"""Foreign-key joins and versioned tables give what Kafka Streams 4.4.0 gave in recordings, step by step.

The shared scenarios do not cover them. Each line of a recording is ``topic,key,value,timestamp -> what was sent``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewindow import StreamsBuilder, Topology, versioned_store
from rewindow.testing import TopologyTestDriver
from tests.dsl.test_foreign_key_join import topology as joined_by_foreign_key

RECORDED = Path(__file__).with_name("recorded")


def recordings(name: str) -> list[Any]:
    """Return the parts of a recording as parameters: the part's name and its lines."""
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (RECORDED / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if "->" in line:
            lines.append(line)
        else:
            lines = parts[line] = []
    return [pytest.param(part, lines, id=part) for part, lines in parts.items()]


def versioned(part: str) -> Topology:
    """Filter, map, join and group a versioned table, and join it to a stream."""
    builder = StreamsBuilder()
    left = builder.table("L", store=versioned_store("L", history="25ms"))
    right = builder.table("R", store="R" if part == "mixed" else versioned_store("R", history="25ms"))
    some = left.filter(lambda _key, value: not value.startswith("b")).map_values(lambda value: f"{value}!", value=str)
    join = {"left": some.left_join, "outer": some.outer_join}.get(part, some.join)
    join(right, text).to_stream().to("join")
    some.to_stream().to("f")
    some.group_by(lambda _key, value: (value[0], value)).aggregate(
        lambda: "", lambda _k, v, s: f"{s}+{v}", lambda _k, v, s: f"{s}-{v}", store="g", value=str
    ).to_stream().to("g")
    builder.stream("S").left_join(some, text).to("st")
    return builder.build()


def text(left: Any, right: Any) -> str:
    return f"{left}-{right}"


def check(topology: Topology, lines: list[str], tell: Callable[[str], str], *, cut: bool) -> None:
    driver = TopologyTestDriver(topology)
    for line in lines:
        given, _, expected = line.partition(" ->")
        topic, key, value, at = given.split(",")
        driver.pipe(topic, key, None if value == "None" else value, int(at))
        told: dict[str, list[str]] = {}
        for output, record in driver.read_all():
            told.setdefault(output, []).append(f"{tell(output)}{record.key}={record.value}@{record.timestamp}")
        sent = [one for output in ("join", "f", "g", "st", "out") for one in told.get(output, [])]
        assert sent == expected.split(), line
        if cut:
            driver.cut()


@pytest.mark.parametrize("mode", ["whole", "cut"])
@pytest.mark.parametrize(("part", "lines"), recordings("foreign_key"))
def test_a_foreign_key_join_sends_what_kafka_sends(part: str, lines: list[str], mode: str) -> None:
    made = joined_by_foreign_key("left" if part == "left" else "inner", history="1h" if part == "vinner" else None)
    check(made, lines, lambda _output: "", cut=mode == "cut")


@pytest.mark.parametrize("mode", ["whole", "cut"])
@pytest.mark.parametrize(("part", "lines"), recordings("versioned"))
def test_versioned_tables_send_what_kafka_sends(part: str, lines: list[str], mode: str) -> None:
    check(versioned(part), lines, lambda output: f"{output}:", cut=mode == "cut")
