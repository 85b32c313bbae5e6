"""The verbs of a stream that look at one record at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from rewindow.dsl.graph import function_of, returned_pair, returned_type
from rewindow.dsl.legacy import LegacyVerbs
from rewindow.dsl.operators import stateless
from rewindow.dsl.operators.conditions import parse
from rewindow.dsl.operators.select import Select, read_fields, type_of
from rewindow.dsl.operators.where import Where
from rewindow.streams.processor import Processor


@dataclass(frozen=True, slots=True)
class RecordVerbs(LegacyVerbs):
    """What `KStream` has of them. They know no time and keep no state.

    A result has its record's timestamp and headers, and leaves in the order in which the task takes the records. A
    function that fails ends the run (65), naming node and record; what is no function is a `TopologyError`.
    """

    def filter(self, predicate: Callable[[Any, Any], bool], *, name: str | None = None) -> Self:
        """Keep the records for which ``predicate(key, value)`` is true."""
        return self._then("filter", stateless.Filter(function_of(predicate, "filter")), name)

    def where(self, condition: str, *, name: str | None = None) -> Self:
        """Keep the records that fulfil a condition, ``where("amount >= 10")``: unlike a function it can run on whole columns.

        It is a small part of SQL over the value's fields, ``key``, ``value`` and ``timestamp`` (`dsl.operators.conditions`).
        Raises `ConfigError` for a text that is no condition.
        """
        return self._then("where", Where(parse(condition)), name)

    def select(self, fields: str, *, name: str | None = None) -> Self:
        """Make rows of some fields, ``select("user, price * pieces as total")``: unlike a function on whole columns too.

        A small part of SQL: fields, ``key``, ``value``, ``timestamp`` and literals, ``+ - *`` of whole numbers and floats
        (`dsl.operators.expressions`), each with its name or another (``as``). The result is a row also where the value is
        null: its fields are null then. Key and types stay. Raises `ConfigError` for a text that cannot be read.
        """
        read = read_fields(fields)
        return replace(self._then("select", Select(read), name), value=type_of(read, self.key, self.value))

    def filter_not(self, predicate: Callable[[Any, Any], bool], *, name: str | None = None) -> Self:
        """Keep the records for which ``predicate(key, value)`` is false."""
        return self._then("filter", stateless.Filter(function_of(predicate, "filter_not"), negate=True), name)

    def map(
        self,
        mapper: Callable[[Any, Any], tuple[Any, Any]],
        *,
        key: Any = None,
        value: Any = None,
        name: str | None = None,
    ) -> Self:
        """Make a new key and value, ``mapper(key, value) -> (key, value)``. Grouping after it crosses a repartition."""
        known = returned_pair(function_of(mapper, "map"))
        return self._then("map", stateless.Map(mapper), name, key=key or known[0], value=value or known[1])

    def flat_map(
        self,
        mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]],
        *,
        key: Any = None,
        value: Any = None,
        name: str | None = None,
    ) -> Self:
        """Make any number of keys and values, ``mapper(key, value) -> [(key, value), ...]``."""
        return self._then("flat-map", stateless.FlatMap(function_of(mapper, "flat_map")), name, key=key, value=value)

    def map_values(
        self, mapper: Callable[..., Any], *, with_key: bool = False, value: Any = None, name: str | None = None
    ) -> Self:
        """Make a new value, ``mapper(value)``; with ``with_key`` ``mapper(key, value)``. The key, and so the partition, stays."""
        stream = self._then("map-values", stateless.MapValues(function_of(mapper, "map_values"), with_key), name)
        return replace(stream, value=value or returned_type(mapper))

    def flat_map_values(
        self,
        mapper: Callable[..., Iterable[Any]],
        *,
        with_key: bool = False,
        value: Any = None,
        name: str | None = None,
    ) -> Self:
        """Make any number of values, ``mapper(value) -> [value, ...]``, or ``mapper(key, value)``. The key stays."""
        stream = self._then(
            "flat-map-values", stateless.FlatMapValues(function_of(mapper, "flat_map_values"), with_key), name
        )
        return replace(stream, value=value)

    def select_key(self, mapper: Callable[[Any, Any], Any], *, key: Any = None, name: str | None = None) -> Self:
        """Make a new key, ``mapper(key, value)``. Grouping after it crosses a repartition."""
        node = stateless.SelectKey(function_of(mapper, "select_key"))
        return self._then("select-key", node, name, key=key or returned_type(mapper), value=self.value)

    def peek(self, action: Callable[[Any, Any], None], *, name: str | None = None) -> Self:
        """Call ``action(key, value)`` for each record and pass it on. A task that is retried calls it again."""
        return self._then("peek", stateless.Peek(function_of(action, "peek")), name)

    def _then(self, verb: str, supplier: Callable[[], Processor], name: str | None, **changed: Any) -> Self:
        node = self.graph.add(verb, supplier, self.node, name=name)
        stream = replace(self, node=node)
        return replace(stream, **changed, is_rekeyed=True) if changed else stream
