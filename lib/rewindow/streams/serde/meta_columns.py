"""The columns that rewindow adds to the rows of its tables."""

from __future__ import annotations

from rewindow.streams.serde.schema import Column

OUTPUT_META = tuple(Column(name, "long") for name in ("_timestamp", "_epoch", "_partition", "_offset", "_run"))
"""The columns of every output row. (_partition, _offset) is a total order across runs; times are epoch ms."""

INTERNAL_META = tuple(Column(name, "long") for name in ("_timestamp", "_epoch", "_order", "_number"))
"""The columns of every row of an internal log; see `streams.ordering.Emission`."""

PARTITION = "_partition"
"""The partition column of changelogs and internal logs. No field of a row may have this name."""

CHANGELOG_META = (Column("_run", "long"), Column("_tombstone", "boolean"))
"""The columns of every changelog row. There is one row per key and run."""
