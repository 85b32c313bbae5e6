"""Write docs/differences.md from docs/differences.yaml and the recorded examples: ``python -m tests.differences``."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import yaml

from tests.conformance import examples

FOLDER = Path(__file__).parents[1] / "docs"
TABLE, PAGE = FOLDER / "differences.yaml", FOLDER / "differences.md"

HEAD = """\
# Differences from Kafka Streams

rewindow follows the proposals KIP-138, KIP-251, KIP-328, KIP-353 and the time-shift proposal (KAFKA-13678, with KIP-1146).
If these proposals say nothing, it follows Kafka Streams 4.4.0. It differs where Kafka Streams loses or duplicates data or
depends on timing, and where the proposals contradict Kafka Streams or themselves. Code and tests cite the numbered decisions, as
in `D7`.
The examples below the table show the decisions that change rows most often.
(`python -m tests.differences` writes this page from `docs/differences.yaml` and `tests/conformance/examples.yaml`.)

| # | Kafka Streams | rewindow | reason |
| --- | --- | --- | --- |
"""


class Difference(NamedTuple):
    """One row: what Kafka or a proposal says, what rewindow does, and why."""

    what: str
    kafka: str
    rewindow: str
    why: str = ""


def differences() -> list[Difference]:
    """Return the rows: first the numbered ones, by number, then the others."""
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    read = [Difference(*_what(row), **row) for row in rows]
    return sorted(read, key=lambda row: (not is_number(row.what), int(row.what[1:]) if is_number(row.what) else 0))


def is_number(what: str) -> bool:
    """Return whether a row's name is the number of a decision about semantics."""
    return what[:1] == "D" and what[1:].isdigit()


def page() -> str:
    """Return the text of the page; each numbered row has an anchor (``#d7``)."""
    return HEAD + "".join(_line(row) for row in differences()) + examples.text()


def _line(row: Difference) -> str:
    anchor = f'<a id="{row.what.lower()}"></a>' if is_number(row.what) else ""
    return f"| {anchor}{' | '.join(row)} |\n".replace("|  |", "| |")


def _what(row: dict[str, str]) -> tuple[str]:
    return (row.pop("number") if "number" in row else row.pop("about"),)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
