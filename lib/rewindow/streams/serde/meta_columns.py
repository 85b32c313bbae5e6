"""The columns that rewindow adds to the rows of its tables."""

from __future__ import annotations

from rewindow.streams.serde.schema import Column

OUTPUT_META = tuple(Column(name, "long") for name in ("_timestamp", "_epoch", "_partition", "_offset", "_run"))
"""What every output row carries: (_partition, _offset) is a total order that goes on over runs; times are epoch ms."""

INTERNAL_META = tuple(Column(name, "long") for name in ("_timestamp", "_epoch", "_order", "_number"))
"""What every row of an internal log carries; see `streams.ordering.Emission`."""

PARTITION = "_partition"
"""The partition column of changelogs and internal logs. A row's own fields cannot be called so."""

CHANGELOG_META = (Column("_run", "long"), Column("_tombstone", "boolean"))
"""What every row of a changelog carries: one row a key and run."""
