"""What a table of reported bugs consists of: a report of another project, and inputs for rewindow that have the same subject."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from rewindow.streams.topology import Topology
from tests.refusals import Refusal

Files = Mapping[str, str | bytes | pa.Table] | Callable[[Path], None]
"""The files of a source by name, or a function that writes them below the project's folder."""


@dataclass(frozen=True, slots=True)
class Landing:
    """Files that are landed, in one call or in several, and their rows in the log, or why the last call is refused.

    The column `n` is key and event time, and the rest is the value, unless `log` has other settings of the log. `rows` are
    those of all calls together, as tuples in the order of `columns`.
    """

    name: str
    format: str
    calls: tuple[Files, ...]
    columns: tuple[str, ...] = ("n", "x")
    rows: tuple[tuple[Any, ...], ...] = ()
    refused: Refusal | None = None
    warned: tuple[str, ...] = ()
    """The codes of all warnings."""
    quarantined: int = 0
    log: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    feed: Mapping[str, Any] = field(default_factory=dict)
    until: tuple[str, ...] = ()
    """`--until` of each call, as ISO times in UTC. Without it: now."""
    needs_spark: bool = False


@dataclass(frozen=True, slots=True)
class Stream:
    """Records in the order of their arrival, `(topic, key, value, time)`, and what the topology sends, in the same form.

    The key of a windowed result is `(key, start, end)`. It is played with a driver, as a whole and cut between any two
    records, and as a replay with one landing for each record.
    """

    name: str
    topology: Callable[[], Topology]
    records: Sequence[tuple[str, Any, Any, int]]
    sent: Sequence[tuple[str, Any, Any, int]] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """Anything else: a function of an empty folder that asserts."""

    name: str
    check: Callable[[Path], None]


Case = Landing | Stream | Check


@dataclass(frozen=True, slots=True)
class Report:
    """A public report: its number and address, what was wrong there, and what rewindow does with such an input."""

    number: str
    url: str
    there: str
    here: str
    cases: tuple[Case, ...]


def github(repository: str, number: int, there: str, here: str, *cases: Case, kind: str = "issues") -> Report:
    """Return a report from GitHub."""
    project = repository.split("/")[1]
    return Report(f"{project} #{number}", f"https://github.com/{repository}/{kind}/{number}", there, here, cases)


def jira(number: str, there: str, here: str, *cases: Case) -> Report:
    """Return a report from the issue tracker of the Apache Software Foundation."""
    return Report(number, f"https://issues.apache.org/jira/browse/{number}", there, here, cases)


def csv(name: str, content: str | bytes, *rows: tuple[Any, ...], file: str = "a.csv", **more: Any) -> Landing:
    """Return the landing of one CSV file."""
    return Landing(name, "csv", ({file: content},), rows=rows, **more)


def json(name: str, content: str | bytes, *rows: tuple[Any, ...], file: str = "a.json", **more: Any) -> Landing:
    """Return the landing of one file of JSON lines."""
    return Landing(name, "json", ({file: content},), rows=rows, **more)


def parquet(name: str, table: Mapping[str, Any], *rows: tuple[Any, ...], **more: Any) -> Landing:
    """Return the landing of one Parquet file."""
    return Landing(name, "parquet", ({"a.parquet": pa.table(dict(table))},), rows=rows, **more)
