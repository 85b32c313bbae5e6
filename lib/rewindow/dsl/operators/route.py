"""The node of `KStream.to` with an extractor: it sends each record to one of several declared topics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from rewindow.errors import DataError
from rewindow.streams.processor import Processor
from rewindow.streams.record import Record, To

TopicNameExtractor = Callable[[Any, Any], str]
"""``extractor(key, value)``: the name of one of the declared topics."""


@dataclass(frozen=True, slots=True)
class Route:
    """Send each record to the sink of the topic that ``extractor`` names. ``sinks`` maps topics to their sinks."""

    keeps_key: ClassVar[bool] = True

    extractor: TopicNameExtractor
    sinks: tuple[tuple[str, str], ...]

    def __call__(self) -> Processor:
        return _Route(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"route({', '.join(topic for topic, _ in self.sinks)})"


class _Route(Processor):
    def __init__(self, settings: Route) -> None:
        self._extractor = settings.extractor
        self._targets = {topic: To.child(sink) for topic, sink in settings.sinks}

    def process(self, record: Record) -> None:
        topic: object = self._extractor(record.key, record.value)
        target = self._targets.get(topic) if isinstance(topic, str) else None
        if target is None:
            declared = ", ".join(map(repr, self._targets))
            message = (
                f"the extractor returned {topic!r} for the key {record.key!r}, which is not a declared output "
                f"({declared}): add it to outputs=[...], or return one of these"
            )
            raise DataError(message)
        self.context.forward(record, to=target)
