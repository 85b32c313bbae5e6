"""The report of a task: the files that it staged, and its small state. The journal stores reports.

The engine creates these values, the journal stores them as JSON, and publishing reads them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewindow.streams.serde.schema import Column

METRICS = (
    *(Column(name, "string") for name in ("job", "branch")),
    Column("_run", "long"),
    Column("sub_topology", "long"),
    Column("partition", "long"),
    *(
        Column(name, "string")
        for name in ("level", "node", "name", "reason", "type", "recording_level", "tags", "unit")
    ),
    *(Column(name, "long") for name in ("count", "total", "minimum", "maximum", "current")),
    Column("rate", "double"),
)
"""The columns of the metrics table, which has one row per task, node, metric and run. ``rate`` is the total divided by the
simulated seconds of the run."""

QUARANTINE = "quarantine"
"""The target of dropped records in a job with ``dropped: quarantine``."""

SHARED = -1
"""The partition number of a file with rows of several tasks, and of the report that lists such files."""

_CHECKSUM = re.compile(r"\.([0-9a-f]{8})\.parquet$")


def staged_name(attempt: str, token: str, checksum: int) -> str:
    """Return the name of a staged file.

    It contains the CRC-32 of the file's bytes, so readers can check the file without a manifest.
    """
    return f"{attempt}-{token}.{checksum:08x}.parquet"


def named_checksum(path: str) -> int | None:
    """Return the CRC-32 in a file's name; None if the name has none."""
    found = _CHECKSUM.search(path)
    return int(found[1], 16) if found else None


@dataclass(frozen=True, slots=True)
class StagedFile:
    """One Parquet file that no table references yet.

    ``partition`` is the partition of the task that wrote the file, or `SHARED`. ``partition_values`` maps the table's
    partition column, if there is one, to the value that all rows of the file have. A changelog has such a column even if the
    table is not partitioned by it.

    ``target`` is ``output/<topic>``, ``changelog/<store>``, ``internal/<topic>``, ``metrics``, ``quarantine`` or, for `land`,
    ``log/<topic>``. ``path`` is relative to the table's root and uses ``/``. ``stats`` are Delta's statistics: ``numRecords``,
    ``minValues``, ``maxValues``, ``nullCount``. ``rows_digest`` is the digest of the rows, however they are split into files.
    ``file_digest`` is the digest of the file's bytes. The CRC-32 of the bytes is in the name.
    """

    target: str
    partition: int
    path: str
    rows: int
    bytes: int
    partition_values: Mapping[str, str]
    stats: Mapping[str, Any]
    rows_digest: str
    file_digest: str

    def as_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StagedFile:
        """Return the value that `as_json` serialized."""
        return cls(**data)


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The result of one task of one sub-topology in one run.

    ``state`` is the JSON of the task's small checkpoint (offsets, clocks, schedules). ``metrics`` has one dictionary per
    metric, ``consumed`` the number of records read from each topic. ``is_vectorized``: whether vectorized execution ran the
    task.

    ``shared_rows``: how many rows the task added to files that it shares with other tasks. A separate report with the partition
    `SHARED` lists the shared files of a sub-topology. ``spilled``: the stores that exceeded their memory and spilled to disk.
    """

    sub_topology: int
    partition: int
    files: tuple[StagedFile, ...]
    state: Mapping[str, Any]
    metrics: tuple[Mapping[str, Any], ...]
    consumed: Mapping[str, int]
    is_vectorized: bool = False
    shared_rows: int = 0
    spilled: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows that the task staged."""
        return sum(file.rows for file in self.files) + self.shared_rows

    def as_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {
            "sub_topology": self.sub_topology,
            "partition": self.partition,
            "files": [file.as_json() for file in self.files],
            "state": dict(self.state),
            "metrics": [dict(measure) for measure in self.metrics],
            "consumed": dict(self.consumed),
            "is_vectorized": self.is_vectorized,
            "shared_rows": self.shared_rows,
            **({"spilled": list(self.spilled)} if self.spilled else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TaskReport:
        """Return the value that `as_json` serialized."""
        return cls(
            sub_topology=data["sub_topology"],
            partition=data["partition"],
            files=tuple(StagedFile.from_json(file) for file in data["files"]),
            state=data["state"],
            metrics=tuple(data["metrics"]),
            consumed=data["consumed"],
            is_vectorized=data.get("is_vectorized", False),
            shared_rows=data.get("shared_rows", 0),
            spilled=tuple(data.get("spilled", ())),
        )
