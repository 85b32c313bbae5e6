"""Views: how joins look up the current values of a table.

The view of a `KTable` contains the names of the stores that have its values, and the operators between these stores and the
table: filters, mappings, joins without a store, a suppress. A node that looks up values

1. is connected to all of the view's ``stores``: ``graph.add(..., stores=(*own, *table.view.stores))``, which puts it into
   the sub-topology of the table;
2. opens the view in ``init``: ``self._table = view.open(context)``;
3. calls ``self._table.get(key)`` in ``process``, which returns ``Stamped(value, timestamp)`` or None. This is the current
   value, because a table's store is updated before the update is sent downstream.

If ``history_ms`` of a view is set, its table is versioned (KIP-889). Then ``get_as_of(key, timestamp)`` returns the value that
was valid at that time, stamped with the time from which it was valid.

Keys of a windowed table are `Windowed`. A timestamp of -1 means that the timestamp is unknown (below a suppress).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from rewindow.streams.processor import ProcessorContext
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.normalizers import copied
from rewindow.streams.state.stores import Stamped


class Lookup(Protocol):
    """An open view, with which a node looks up values."""

    def get(self, key: Any) -> Stamped | None:
        """Return the current value of a key and its timestamp; None if the key has no row."""
        ...

    def get_as_of(self, key: Any, timestamp: int) -> Stamped | None:
        """Return the value that was valid at ``timestamp``, with the start of its validity; None if there was none.

        Only for versioned tables.
        """
        ...


class TableView(ABC):
    """Describes how to look up a table's values."""

    __slots__ = ()

    @property
    @abstractmethod
    def stores(self) -> tuple[str, ...]:
        """The names of the stores to which a node that opens the view must be connected."""

    @property
    def history_ms(self) -> int | None:
        """The length of the table's history in ms; None if the table is not versioned."""
        return None

    @abstractmethod
    def open(self, context: ProcessorContext) -> Lookup:
        """Open the view for a node. Raises `ConfigError` if the node is not connected to all stores."""


@dataclass(frozen=True, slots=True)
class StoreView(TableView):
    """A view of a table that has its own store, which may be versioned or windowed. ``history``: see ``history_ms``."""

    store: str
    history: int | None = None

    @property
    def stores(self) -> tuple[str, ...]:
        """See `TableView`."""
        return (self.store,)

    @property
    def history_ms(self) -> int | None:
        """See `TableView`."""
        return self.history

    def open(self, context: ProcessorContext) -> Lookup:
        """See `TableView`."""
        return _StoreLookup(context.store(self.store))


@dataclass(frozen=True, slots=True)
class ViewOfView(TableView):
    """A view that computes its values from the values of another view. It needs the stores of that view."""

    table: TableView

    @property
    def stores(self) -> tuple[str, ...]:
        """See `TableView`."""
        return self.table.stores

    @property
    def history_ms(self) -> int | None:
        """See `TableView`."""
        return self.table.history_ms


@dataclass(frozen=True, slots=True)
class DerivedView(ViewOfView):
    """A view of a filter, a mapping or the results of an aggregate. Its values are derived from another view's values."""

    derive: Callable[[Any, Any], Any]
    """``derive(key, value)`` returns the value; None means that there is no row."""

    def open(self, context: ProcessorContext) -> Lookup:
        """See `TableView`."""
        return _DerivedLookup(self.table.open(context), self.derive)


@dataclass(frozen=True, slots=True)
class JoinedView(TableView):
    """A view of a table join without a store.

    ``keeps_left``, ``keeps_right``: whether rows of this side are kept without a match.
    """

    left: TableView
    right: TableView
    joiner: Callable[[Any, Any, Any], Any]
    keeps_left: bool = False
    keeps_right: bool = False

    @property
    def stores(self) -> tuple[str, ...]:
        """See `TableView`."""
        return tuple(dict.fromkeys((*self.left.stores, *self.right.stores)))

    def open(self, context: ProcessorContext) -> Lookup:
        """See `TableView`."""
        return _JoinedLookup(self, self.left.open(context), self.right.open(context))


@dataclass(frozen=True, slots=True)
class HeldBackView(TableView):
    """A view of a suppressed table.

    For a buffered key it has the value that was last sent, for other keys the table's value.
    """

    table: TableView
    buffer: str

    @property
    def stores(self) -> tuple[str, ...]:
        """See `TableView`."""
        return (*self.table.stores, self.buffer)

    def open(self, context: ProcessorContext) -> Lookup:
        """See `TableView`."""
        return _HeldBackLookup(self.table.open(context), context.store(self.buffer))


class _StoreLookup:
    def __init__(self, store: Any) -> None:
        self.get = store.find
        self._store = store

    def get_as_of(self, key: Any, timestamp: int) -> Stamped | None:
        row: Stamped | None = self._store.get_as_of(key, timestamp)
        return row


class _DerivedLookup:
    def __init__(self, table: Lookup, derive: Callable[[Any, Any], Any]) -> None:
        self._table, self._derive = table, derive

    def get(self, key: Any) -> Stamped | None:
        return self._derived(key, self._table.get(key))

    def get_as_of(self, key: Any, timestamp: int) -> Stamped | None:
        return self._derived(key, self._table.get_as_of(key, timestamp))

    def _derived(self, key: Any, row: Stamped | None) -> Stamped | None:
        value = None if row is None else self._derive(key, row.value)
        return None if row is None or value is None else Stamped(value, row.timestamp)


class _NeverVersioned:
    def get_as_of(self, key: Any, timestamp: int) -> Stamped | None:
        raise NotImplementedError(f"{key!r} as of {timestamp}: the table keeps no versions, see TableView.history_ms")


class _JoinedLookup(_NeverVersioned):
    def __init__(self, view: JoinedView, left: Lookup, right: Lookup) -> None:
        self._view, self._left, self._right = view, left, right

    def get(self, key: Any) -> Stamped | None:
        left, right = self._left.get(key), self._right.get(key)
        view = self._view
        if (left is None and not view.keeps_right) or (right is None and not view.keeps_left):
            return None
        inputs = [side for side in (left, right) if side is not None]
        if not inputs:
            return None
        value = view.joiner(key, left and left.value, right and right.value)
        return None if value is None else Stamped(value, max(side.timestamp for side in inputs))


class _HeldBackLookup(_NeverVersioned):
    def __init__(self, table: Lookup, buffer: Any) -> None:
        self._table, self._buffer = table, buffer

    def get(self, key: Any) -> Stamped | None:
        held = self._buffer.find(key)
        if held is None:
            return self._table.get(key)
        return None if held.prior is None else Stamped(copied(held.prior), UNKNOWN)
