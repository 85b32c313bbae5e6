"""What telemetry says of a command: the operation, the tables that it read and wrote, and its counts. Plain values."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewindow.dsl.flows import Origin
    from rewindow.streams.serde.schema import Column

LAND, RUN, BACKFILL, PROMOTE, REWIND, PUBLISH = "land", "run", "backfill", "promote", "rewind", "publish"
"""The commands that are observed."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that a command does to one feed or job: a landing, a run, a backfill.

    ``began_ms`` is in epoch ms. A backfill and a promotion are the ``parent`` of the runs that they make.
    """

    kind: str
    project: str
    target: str
    subject: str
    began_ms: int
    branch: str | None = None
    parent: Operation | None = None
    id: str = ""
    """A UUID of version 7: consumers sort by it."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table, or files. ``location`` is an absolute path or URI; of a table that a catalog governs, its full name."""

    location: str
    columns: tuple[Column, ...] = ()
    format: str = "delta"
    version: int | None = None
    catalog_host: str | None = None
    """Where the catalog is; None for a table at a path."""
    name: str | None = None
    """The name of a table at a path, as in the job's file."""
    warehouse: str = ""
    """The folder of the tables with such names."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """The columns of a log that have other names in this table: name in the log -> name in the table."""


@dataclass(frozen=True, slots=True)
class ColumnOrigins:
    """The origins of each column of an output, with the tables of their topics (`dsl.column_origins`)."""

    tables: Mapping[str, Table]
    columns: Mapping[str, frozenset[Origin]]
    rows: frozenset[Origin] = frozenset()


@dataclass(frozen=True, slots=True)
class Read:
    """A table that was read: the records taken, and what a landing ledger says of them."""

    table: Table
    records: int | None = None
    landings: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A table that was written: what one run or landing added, and where each column comes from (None: unknown)."""

    table: Table
    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    landings: Mapping[str, Any] | None = None
    commit: Mapping[str, Any] | None = None
    """The run that wrote last, its rows and their digest."""
    origins: ColumnOrigins | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """A number to count or to show: ``name`` as in `spans_and_metrics.METRICS`."""

    name: str
    value: float
    attributes: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of an operation, at its start or at its end. ``details`` are JSON values in snake case."""

    inputs: tuple[Read, ...] = ()
    outputs: tuple[Written, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    measures: tuple[Measure, ...] = ()


NOTHING = Facts()


def new_id(now_ms: int) -> str:
    """Return a UUID of version 7 (RFC 9562): 48 bits of time, then random ones."""
    random = int.from_bytes(os.urandom(10), "big")
    high, low = random >> 62 & 0xFFF, random & (1 << 62) - 1
    return str(uuid.UUID(int=now_ms << 80 | 7 << 76 | high << 64 | 2 << 62 | low))
