"""The facts about a command for telemetry, as plain values: the operation, the tables that it read and wrote, and counts."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewindow.dsl.column_origins import Origin
    from rewindow.streams.serde.schema import Column

LAND, RUN, BACKFILL, PROMOTE, REWIND, PUBLISH = "land", "run", "backfill", "promote", "rewind", "publish"
"""The commands that are observed."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What a command does to one feed or job: a landing, a run, a backfill.

    ``began_ms`` is in epoch ms. ``parent`` is the backfill or promotion to which the run belongs.
    """

    kind: str
    project: str
    target: str
    subject: str
    began_ms: int
    branch: str | None = None
    parent: Operation | None = None
    id: str = ""
    """A UUID of version 7, by which consumers can sort operations."""
    began_s: float = field(default_factory=time.monotonic, compare=False)
    """When the operation began, in seconds of the monotonic clock."""

    @property
    def seconds(self) -> float:
        """The seconds since the operation began. They are correct even if the machine's clock was set in the meantime."""
        return time.monotonic() - self.began_s


@dataclass(frozen=True, slots=True)
class Table:
    """A table or a set of files. ``location`` is an absolute path or URI, or the full name of a table that a catalog governs."""

    location: str
    columns: tuple[Column, ...] = ()
    format: str = "delta"
    version: int | None = None
    catalog_host: str | None = None
    """The host of the catalog; None for a table at a path."""
    name: str | None = None
    """For a table at a path: its name in the job's file."""
    warehouse: str = ""
    """The folder or URI that contains all tables that have a ``name``."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Maps the name of a column in the log to its name in this table. Only columns with another name are in the mapping."""


@dataclass(frozen=True, slots=True)
class ColumnOrigins:
    """The origins of each column of an output (`dsl.column_origins`). ``tables`` maps the topic of an origin to its table.

    ``rows`` are the origins that decide which rows the output has.
    """

    tables: Mapping[str, Table]
    columns: Mapping[str, frozenset[Origin]]
    rows: frozenset[Origin] = frozenset()


@dataclass(frozen=True, slots=True)
class Read:
    """A table that was read. ``records``: the number of records read. ``landings``: which landings, from the feed's ledger."""

    table: Table
    records: int | None = None
    landings: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A table that was written: what one run or landing added, and the origin of each column (None if unknown)."""

    table: Table
    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    landings: Mapping[str, Any] | None = None
    commit: Mapping[str, Any] | None = None
    """The last run that wrote the table, with the number of its rows and their digest."""
    origins: ColumnOrigins | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """A value of a metric. ``name`` is a key of `spans_and_metrics.METRICS`."""

    name: str
    value: float
    attributes: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about an operation that are known at its start or at its end.

    ``details`` are JSON values, named in snake case.
    """

    inputs: tuple[Read, ...] = ()
    outputs: tuple[Written, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    measures: tuple[Measure, ...] = ()


NOTHING = Facts()


def new_id(now_ms: int) -> str:
    """Return a UUID of version 7 (RFC 9562): 48 bits of time, then random bits."""
    random = int.from_bytes(os.urandom(10), "big")
    high, low = random >> 62 & 0xFFF, random & (1 << 62) - 1
    return str(uuid.UUID(int=now_ms << 80 | 7 << 76 | high << 64 | 2 << 62 | low))
