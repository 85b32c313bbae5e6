"""``python -m tests.differences``: write DIFFERENCES.md from differences.yaml, the table that the tests read too."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import yaml

FOLDER = Path(__file__).parents[1] / "lib" / "rewindow"
TABLE, PAGE = FOLDER / "differences.yaml", FOLDER / "DIFFERENCES.md"

HEAD = """\
# Differences from Kafka Streams

The semantics are those of Kafka Streams 4.3.1 and of the proposals KIP-138, KIP-251, KIP-328, KIP-353 and the time-shift
proposal (KAFKA-13678, with KIP-1146). Where Kafka loses or doubles data, depends on chance, or the proposals contradict it
or themselves, rewindow does the following. (Made from `differences.yaml` by `python -m tests.differences`.)

| # | Kafka Streams | rewindow | why |
| --- | --- | --- | --- |
"""


class TableDiff(NamedTuple):
    """One row: what Kafka or a proposal says, what happens here, why."""

    what: str
    kafka: str
    rewindow: str
    why: str = ""


def differences() -> list[TableDiff]:
    """Return the rows; the numbered ones first, in order."""
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    made = [TableDiff(*_what(row), **row) for row in rows]
    return sorted(made, key=lambda one: (not is_number(one.what), int(one.what[1:]) if is_number(one.what) else 0))


def is_number(what: str) -> bool:
    """Return whether a row is about a decision of the design."""
    return what[:1] == "D" and what[1:].isdigit()


def page() -> str:
    """Return the text of the page."""
    return HEAD + "".join(f"| {' | '.join(one)} |\n".replace("|  |", "| |") for one in differences())


def _what(row: dict[str, str]) -> tuple[str]:
    return (row.pop("number") if "number" in row else row.pop("about"),)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
