"""The examples in differences.md: an input, the rows that Kafka Streams sent, the rows that rewindow sends, and why."""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

import rewindow
from rewindow import Processor, ProcessorContext, PunctuationType, Record, StreamsBuilder, Topology
from rewindow.testing import TopologyTestDriver
from tests.conformance.drive import sent
from tests.conformance.scenario import CARRIED, HERE, Case, read

VECTORS = CARRIED / "differences.jsonl"

HEAD = """
## Examples

Each example is a graph, its input in order of arrival, and the rows that each record caused. `A=1 @5` is a record with key A,
value 1 and timestamp 5; `A[0,5]=2 @5` is the row of a window; every time is in milliseconds. Kafka's rows were recorded with
Kafka Streams 4.4.0 (`tests/conformance/vectors/differences.jsonl`); `make oracle` records them again and compares. rewindow's
rows come from running the code that is shown.
"""


class Example(NamedTuple):
    """An example: the recorded scenario, and what the page says about it."""

    scenario: str
    title: str
    code: str
    says: str

    @property
    def number(self) -> str:
        """The decision that it shows."""
        return self.scenario.split("_", 1)[0].upper()

    def case(self) -> Case:
        """Return the recorded scenario."""
        return next(case for case in read(VECTORS) if case.name == self.scenario)

    def topology(self) -> Topology:
        """Build the topology from the code that the page shows."""
        builder = StreamsBuilder()
        names = {name: getattr(rewindow, name) for name in rewindow.__all__}
        exec(self.code, {**names, "Ticking": Ticking, "builder": builder})  # noqa: S102 - this repository's own text
        return builder.build()

    def rows(self) -> list[list[dict[str, Any]]]:
        """Run the code, and return the rows by step."""
        driver = TopologyTestDriver(self.topology())
        rows = []
        for step in self.case().scenario["steps"]:
            driver.pipe(step["pipe"], step["key"], step["value"], step["ts"])
            rows.append([sent(*one) for one in driver.read_all()])
        return rows


class Ticking(Processor):
    """The processor of the example for D21, for which the page has words instead of code."""

    def init(self, context: ProcessorContext) -> None:
        """See `Processor`."""
        self._context = context
        context.schedule("10ms", PunctuationType.STREAM_TIME, self._tick, start_time="10ms", name="tick")

    def process(self, record: Record) -> None:
        """See `Processor`."""
        self._context.forward(record._replace(timestamp=record.timestamp + 10))

    def _tick(self, now_ms: int) -> None:
        self._context.forward(Record("tick", f"tick@{now_ms}", now_ms))


def examples() -> list[Example]:
    """Return the examples in the order of the page."""
    return [Example(**one) for one in yaml.safe_load((HERE / "examples.yaml").read_text(encoding="utf-8"))]


def text() -> str:
    """Return the part of the page with the examples."""
    return HEAD + "".join(_section(one) for one in examples())


def _section(example: Example) -> str:
    case, rows = example.case(), example.rows()
    sinks = len(case.scenario["sinks"])
    lines = [f"\n### {example.number}: {example.title}\n", "```python", example.code.rstrip(), "```\n"]
    lines += ["| input | Kafka Streams | rewindow |", "| --- | --- | --- |"]
    topics = {step["pipe"] for step in case.scenario["steps"]}
    for step, kafka, ours in zip(case.scenario["steps"], case.steps, rows, strict=True):
        where = f"{step['pipe']}: " if len(topics) > 1 else ""
        lines.append(f"| {where}{_row(step)} | {_rows(kafka, sinks)} | {_rows(ours, sinks)} |".replace("  |", " |"))
    return "\n".join([*lines, f"\n{example.says}\n"])


def _rows(rows: list[dict[str, Any]], sinks: int) -> str:
    return ", ".join(f"{row['sink']}: {_row(row)}" if sinks > 1 else _row(row) for row in rows)


def _row(row: dict[str, Any]) -> str:
    key = row["key"]
    if isinstance(key, dict):
        key = f"{key['key']}[{key['start']},{key['end']}]"
    value = "null" if row["value"] is None else row["value"]
    return f"`{key}={value} @{row['ts']}`".replace("|", "\\|")
