"""The shapes of the records that a source reads, if vectorized execution can read them."""

from __future__ import annotations

from typing import NamedTuple

from rewindow.engine.worker.vectorized.errors import NotVectorizableError
from rewindow.engine.worker.vectorized.internal_source import InternalSource, internal_sources
from rewindow.streams.nodes import SourceNode
from rewindow.streams.serde.binding import LogShapes
from rewindow.streams.serde.schema import Shape
from rewindow.streams.topology import Topology

KEY_TYPES = frozenset(("string", "long", "boolean", "binary"))


class SourceTypes(NamedTuple):
    """The shapes of a topic's records. ``internal``: the repartition topic; None for a log of the feed."""

    internal: InternalSource | None
    key: Shape
    value: Shape


def source_types(topology: Topology, source: SourceNode, logs: LogShapes) -> SourceTypes:
    """Return the shapes of a source. Raises `NotVectorizableError` for keys that cannot be numbered."""
    internal = internal_sources(topology, logs).get(source.topic) if source.is_internal else None
    if source.is_internal and internal is None:
        raise NotVectorizableError(f"every task reads all partitions of {source.topic}")
    key, value = (internal.key, internal.value) if internal else logs[source.topic]
    for column in key.columns:
        if column.type not in KEY_TYPES:
            raise NotVectorizableError(
                f"the key column {column.name} is {column.type}, not one of {', '.join(sorted(KEY_TYPES))}"
                f"{' (declare the type of a new key: key=...)' if internal and column.type == 'json' else ''}"
            )
    if not key.is_bare and key.row_type is None:
        raise NotVectorizableError(
            f"the keys of {source.topic} are windows: select_key what to group by, or to join by"
        )
    return SourceTypes(internal, key, value)
