"""`Materialized`: the store in which a verb keeps its state, with the retention of KIP-328."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from rewindow.errors import ConfigError, TopologyError
from rewindow.streams.duration import in_words, to_ms
from rewindow.streams.state.stores import JOIN, KEY_VALUE, WINDOW, StoreBuilder
from rewindow.streams.windows.calendar import CalendarWindows
from rewindow.streams.windows.join import JoinWindows
from rewindow.streams.windows.time import Windows


@dataclass(frozen=True, slots=True)
class Materialized:
    """The name of a verb's store, and how long the store retains windows.

    ``store=`` accepts a `Materialized`, a name, or a ready-made store (`window_store`, `session_store`,
    `key_value_store`). A ready-made store keeps its own retention and declared types.
    """

    name: str
    retention_ms: int | None = None
    """The retention in milliseconds; None means as long as the windows need. Ignored for key-value stores, which expire
    nothing (KIP-328)."""
    ready_made: StoreBuilder | None = None

    @classmethod
    def as_(cls, store: str | StoreBuilder, *, retention: str | timedelta | None = None) -> Materialized:
        """Name the store, and retain windows for at least ``retention`` (``"1d"``).

        Raises `TopologyError` for an empty name, and for a retention together with a ready-made store.
        """
        if isinstance(store, StoreBuilder):
            made = cls(store.name, ready_made=store)
            return made if retention is None else made.with_retention(retention)
        # User code may pass any object.
        given: object = store
        if not isinstance(given, str) or not given:
            raise TopologyError(
                "store-without-name",
                "store={given}: give it a name, Materialized.as_(name, retention=...) or a ready-made store",
                given=repr(store),
            )
        named = cls(store)
        return named if retention is None else named.with_retention(retention)

    def with_retention(self, retention: str | timedelta) -> Materialized:
        """Return a copy with this retention. Raises `TopologyError` as `as_` does, `ConfigError` for a negative retention."""
        if self.ready_made is not None:
            raise TopologyError(
                "ready-made-store-retention",
                "store {store!r} is ready-made and has its own retention: change it there",
                store=self.name,
            )
        retention_ms = to_ms(retention)
        if retention_ms < 0:
            raise ConfigError(
                "store-retention-negative",
                "store {store!r}: the retention {retention} is negative: give 0 or more",
                store=self.name,
                retention=repr(retention),
            )
        return replace(self, retention_ms=retention_ms)

    def retained_ms(self, needed_ms: int, default_ms: int | None = None) -> int:
        """Return the store's retention in ms. If the user gave none, it is ``default_ms`` or, if that is None, ``needed_ms``.

        Raises `TopologyError` if the given retention is less than ``needed_ms``.
        """
        given_ms = self.ready_made.retention_ms if self.ready_made is not None else self.retention_ms
        if given_ms is None:
            return needed_ms if default_ms is None else default_ms
        if given_ms < needed_ms:
            raise TopologyError(
                "store-retention-too-short",
                "store {store!r}: its retention of {retention} is less than its windows need, {minimum} (with "
                "their grace): make it at least that, or leave it out",
                store=self.name,
                retention=in_words(given_ms),
                minimum=in_words(needed_ms),
            )
        return given_ms

    def key_values(self, key: Any, value: Any) -> StoreBuilder:
        """Return the store of a table without windows. Raises `TopologyError` for a ready-made store of another kind."""
        self._check_kind(KEY_VALUE)
        return replace(self._builder(KEY_VALUE, key, value), is_stamped=True)

    def windowed(self, windows: Windows, key: Any, value: Any) -> StoreBuilder:
        """Return the store of a windowed table.

        Raises `TopologyError` for a retention that is too short, and for a ready-made store of another kind or window size.
        """
        kind, size_ms = windows.store_kind, windows.size_ms
        self._check_kind(kind)
        if self.ready_made is not None and self.ready_made.window_size_ms != size_ms:
            raise TopologyError(
                "store-window-size-differs",
                "store {store!r} was made for windows of {store_size}, and these are {size} long: make it with "
                "size={size!r}",
                store=self.name,
                store_size=in_words(self.ready_made.window_size_ms),
                size=in_words(size_ms),
            )
        return replace(
            self._builder(kind, key, value),
            is_stamped=kind == WINDOW,
            window_size_ms=size_ms,
            calendar=windows if isinstance(windows, CalendarWindows) else None,
            retention_ms=self.retained_ms(windows.needed_retention_ms, windows.retention_ms),
        )

    def joined(self, windows: JoinWindows, key: Any, value: Any) -> StoreBuilder:
        """Return the store of one side of a join. Raises `TopologyError` as `windowed` does."""
        self._check_kind(JOIN)
        retention_ms = self.retained_ms(windows.needed_retention_ms, windows.retention_ms)
        return replace(self._builder(JOIN, key, value), retention_ms=retention_ms)

    def _builder(self, kind: str, key: Any, value: Any) -> StoreBuilder:
        made = self.ready_made
        if made is None:
            return StoreBuilder(self.name, kind, key, value)
        return replace(
            made, key=key if made.key is None else made.key, value=value if made.value is None else made.value
        )

    def _check_kind(self, kind: str) -> None:
        if self.ready_made is not None and self.ready_made.kind != kind:
            raise TopologyError(
                "store-kind-wrong",
                "store {store!r} is a {kind} store, but a {needed} store is needed: make it one, or give a name alone",
                store=self.name,
                kind=self.ready_made.kind,
                needed=kind,
            )


StoreSpec = str | Materialized | StoreBuilder
"""The values that ``store=`` accepts: a name, a `Materialized`, or a ready-made store."""


def materialized(store: StoreSpec) -> Materialized:
    """Return the argument ``store=`` of a verb as a `Materialized`."""
    return store if isinstance(store, Materialized) else Materialized.as_(store)
