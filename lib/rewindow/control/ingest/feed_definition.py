"""A feed's definition: the logs it lands, with their columns, and how the GENERATION row of its ledger states it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rewindow.contracts.ingest import SourceOffsets
from rewindow.streams.serde.binding import LogShapes, log_shape
from rewindow.streams.serde.schema import Column


@dataclass(frozen=True, slots=True)
class LogSchema:
    """The typed columns of a log. ``scalar_key`` (``scalar_value``): the key (value) is its only column's value, not a row."""

    key: tuple[Column, ...]
    value: tuple[Column, ...]
    scalar_key: bool
    scalar_value: bool

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**asdict(self), "key": [list(c) for c in self.key], "value": [list(c) for c in self.value]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LogSchema:
        """Return the value of a JSON form."""
        key, value = (tuple(Column(*column) for column in data[part]) for part in ("key", "value"))
        return cls(key, value, data["scalar_key"], data["scalar_value"])


@dataclass(frozen=True, slots=True)
class FeedDefinition:
    """The definition of a generation. ``fingerprint`` covers the settings that later landings may not change."""

    feed: str
    generation: int
    partitions: int
    logs: Mapping[str, LogSchema]
    fingerprint: str
    kept: int = 0
    """Landings 1 to ``kept`` are shared with the previous generation."""
    source_offsets: Mapping[str, SourceOffsets] = field(default_factory=dict)
    """Logs that are tables with source offsets: all logs of the feed, or none."""
    recorded: tuple[str, ...] = ()
    """Logs of files that recorded a topic, whose partitions these logs have."""


def log_shapes(logs: Mapping[str, LogSchema]) -> LogShapes:
    """Return the shapes of each topic's key and value, as a task reads them."""
    return {
        topic: (log_shape(log.key, is_scalar=log.scalar_key), log_shape(log.value, is_scalar=log.scalar_value))
        for topic, log in logs.items()
    }


def definition_as_json(definition: FeedDefinition) -> dict[str, Any]:
    """Return the body of a GENERATION row."""
    logs = {topic: schema.as_json() for topic, schema in definition.logs.items()}
    source_offsets = {topic: asdict(log) for topic, log in definition.source_offsets.items()}
    return {
        "feed": definition.feed,
        "generation": definition.generation,
        "partitions": definition.partitions,
        "fingerprint": definition.fingerprint,
        "kept": definition.kept,
        "logs": logs,
        **({"source_offsets": source_offsets} if source_offsets else {}),
        **({"recorded": list(definition.recorded)} if definition.recorded else {}),
    }


def definition_from_json(body: Mapping[str, Any]) -> FeedDefinition:
    """Return the definition in the body of a GENERATION row."""
    logs = {topic: LogSchema.from_json(schema) for topic, schema in body["logs"].items()}
    source_offsets = {topic: SourceOffsets(**log) for topic, log in body.get("source_offsets", {}).items()}
    return FeedDefinition(
        body["feed"],
        body["generation"],
        body["partitions"],
        logs,
        body["fingerprint"],
        body["kept"],
        source_offsets,
        tuple(body.get("recorded", ())),
    )
