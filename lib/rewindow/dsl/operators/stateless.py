"""Stateless verbs, which handle one record at a time. They neither change timestamps nor use a clock.

Each public class is a *supplier*. The topology keeps an instance of it as data, and `describe` returns its text. Calling the
instance makes a processor, a new one for each epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rewindow.errors import DataError
from rewindow.streams.metrics import SKIPPED_RECORDS
from rewindow.streams.nodes import LeavesOut
from rewindow.streams.processor import Processor
from rewindow.streams.record import Record, To

TopicNameExtractor = Callable[[Any, Any], str]
"""``extractor(key, value)`` returns the name of one of the declared topics."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the records for which ``predicate(key, value)`` is true or, with ``negate``, false."""

    keeps_key: ClassVar[bool] = True
    leaves_out: ClassVar[LeavesOut] = LeavesOut.BY_CONDITION

    predicate: Callable[[Any, Any], bool]
    negate: bool = False

    def __call__(self) -> Processor:
        return _PerRecord(lambda r: (r,) if bool(self.predicate(r.key, r.value)) is not self.negate else ())

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "filter_not" if self.negate else "filter"


@dataclass(frozen=True, slots=True)
class Map:
    """Replace key and value: ``mapper(key, value) -> (key, value)``."""

    mapper: Callable[[Any, Any], tuple[Any, Any]]

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "map"

    def __call__(self) -> Processor:
        return _PerRecord(lambda r: (_pair(self.mapper(r.key, r.value), r, "map"),))


@dataclass(frozen=True, slots=True)
class FlatMap:
    """Replace each record by any number of records: ``mapper(key, value) -> [(key, value), ...]``."""

    mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]]

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "flat_map"

    def __call__(self) -> Processor:
        return _PerRecord(lambda r: [_pair(pair, r, "flat_map") for pair in self.mapper(r.key, r.value)])


@dataclass(frozen=True, slots=True)
class MapValues:
    """Replace the value by ``mapper(value)`` or, with ``with_key``, by ``mapper(key, value)``. The key does not change."""

    keeps_key: ClassVar[bool] = True

    mapper: Callable[..., Any]
    with_key: bool = False
    value: Any = None
    """The declared type of the results; None if it is not declared."""

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "map_values"

    def __call__(self) -> Processor:
        if self.with_key:
            return _PerRecord(lambda r: (r.with_value(self.mapper(r.key, r.value)),))
        return _PerRecord(lambda r: (r.with_value(self.mapper(r.value)),))


@dataclass(frozen=True, slots=True)
class FlatMapValues:
    """Replace the value by any number of values: ``mapper(value)`` or, with ``with_key``, ``mapper(key, value)``."""

    keeps_key: ClassVar[bool] = True

    mapper: Callable[..., Iterable[Any]]
    with_key: bool = False
    value: Any = None
    """The declared type of the results; None if it is not declared."""

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "flat_map_values"

    def __call__(self) -> Processor:
        if self.with_key:
            return _PerRecord(lambda r: [r.with_value(value) for value in self.mapper(r.key, r.value)])
        return _PerRecord(lambda r: [r.with_value(value) for value in self.mapper(r.value)])


@dataclass(frozen=True, slots=True)
class SelectKey:
    """Replace the key by ``mapper(key, value)``."""

    mapper: Callable[[Any, Any], Any]

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "select_key"

    def __call__(self) -> Processor:
        return _PerRecord(lambda r: (r.with_key(self.mapper(r.key, r.value)),))


@dataclass(frozen=True, slots=True)
class Peek:
    """Call ``action(key, value)`` and pass the record on. If the task is retried, the action is called again."""

    keeps_key: ClassVar[bool] = True

    action: Callable[[Any, Any], None]

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "peek"

    def __call__(self) -> Processor:
        def look(record: Record) -> tuple[Record]:
            self.action(record.key, record.value)
            return (record,)

        return _PerRecord(look)


@dataclass(frozen=True, slots=True)
class PassThrough:
    """Pass every record on. This supplier is used where streams are merged and where a branch starts."""

    keeps_key: ClassVar[bool] = True

    verb: str = "merge"

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return self.verb

    def __call__(self) -> Processor:
        return _PerRecord(lambda r: (r,))


@dataclass(frozen=True, slots=True)
class KeyedOnly:
    """Drop records without a key before a repartition, as Kafka does. The dropped records are counted as skipped.

    ``lets_pass``: whether to keep these records, because a join below sends them.
    """

    keeps_key: ClassVar[bool] = True

    lets_pass: bool = False

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return "with_null_keys" if self.lets_pass else "keyed_only"

    def __call__(self) -> Processor:
        return _KeyedOnly(lets_pass=self.lets_pass)


@dataclass(frozen=True, slots=True)
class Split:
    """Send a record to the first branch whose ``predicate(key, value)`` is true. If there is none, drop the record.

    ``branches`` has pairs ``(predicate, node)``. Branches are added while the topology is built.
    """

    keeps_key: ClassVar[bool] = True
    leaves_out: ClassVar[LeavesOut] = LeavesOut.BY_CONDITION

    branches: list[tuple[Callable[[Any, Any], bool], str]] = field(default_factory=list)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"split({', '.join(child for _, child in self.branches)})"

    def __call__(self) -> Processor:
        return _Split([(predicate, To.child(child)) for predicate, child in self.branches])


@dataclass(frozen=True, slots=True)
class Route:
    """Send each record to the sink of the topic that ``extractor`` returns. ``sinks`` has pairs ``(topic, sink node)``."""

    keeps_key: ClassVar[bool] = True

    extractor: TopicNameExtractor
    sinks: tuple[tuple[str, str], ...]

    def __call__(self) -> Processor:
        return _Route(self)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"route({', '.join(topic for topic, _ in self.sinks)})"


class _PerRecord(Processor):
    """Calls a function for each record and forwards its results."""

    def __init__(self, apply: Callable[[Record], Iterable[Record]]) -> None:
        self._apply = apply

    def process(self, record: Record) -> None:
        for result in self._apply(record):
            self.context.forward(result)


class _KeyedOnly(Processor):
    def __init__(self, *, lets_pass: bool) -> None:
        self._lets_pass = lets_pass

    def process(self, record: Record) -> None:
        if record.key is None and not self._lets_pass:
            self.context.drop(record, SKIPPED_RECORDS, reason="null-key")
        else:
            self.context.forward(record)


def _pair(result: Any, record: Record, verb: str) -> Record:
    if not isinstance(result, tuple) or len(result) != 2:
        message = f"{verb} must return (key, value), not {result!r}"
        raise TypeError(message)
    return Record(result[0], result[1], record.timestamp, record.headers)


class _Split(Processor):
    def __init__(self, branches: list[tuple[Callable[[Any, Any], bool], To]]) -> None:
        self._branches = branches

    def process(self, record: Record) -> None:
        for predicate, to in self._branches:
            if predicate(record.key, record.value):
                self.context.forward(record, to=to)
                return


class _Route(Processor):
    def __init__(self, settings: Route) -> None:
        self._extractor = settings.extractor
        self._targets = {topic: To.child(sink) for topic, sink in settings.sinks}

    def process(self, record: Record) -> None:
        topic: object = self._extractor(record.key, record.value)
        target = self._targets.get(topic) if isinstance(topic, str) else None
        if target is None:
            raise DataError(
                "extracted-topic-undeclared",
                "the extractor returned {topic} for the key {key}, which is not a declared output ({topics}): add "
                "it to outputs=[...], or return one of these",
                topic=repr(topic),
                key=repr(record.key),
                topics=", ".join(map(repr, self._targets)),
            )
        self.context.forward(record, to=target)
