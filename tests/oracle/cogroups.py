"""Aggregates of several streams. Each stream has its own function and, in Kafka, its own clock; they share the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.oracle.folds import Fold
from tests.oracle.nodes import Setting
from tests.oracle.scripts import Message
from tests.oracle.sessions import SessionAggregate
from tests.oracle.sliding import SlidingAggregate
from tests.oracle.tables import StreamAggregate
from tests.oracle.vocabulary import tagger
from tests.oracle.windows import WindowAggregate


class TaggedFold(Fold):
    """The function of one stream: it adds a tag and a value to a text."""

    def __init__(self, fn: Mapping[str, Any]) -> None:
        super().__init__("concat")
        self._tagged = tagger(fn)

    def add(self, state: Any, value: Any) -> Any:
        """See `Fold`."""
        return self._tagged(state or "", value)


def folds_of(setting: Setting) -> list[Fold]:
    """Return the functions, by stream."""
    assert setting.cogroup is not None
    return [TaggedFold(fn) for fn in setting.cogroup["fns"]]


class CogroupedRows(StreamAggregate):
    """One state per key of several streams."""

    def take(self, message: Message, side: int, /) -> None:
        """See `Node`."""
        self._fold = folds_of(self.setting)[side]
        super().take(message, side)


class _Clocks:
    """A clock for each stream, or, above a final result, one for all of them (D10)."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)  # type: ignore[call-arg]
        self._folds = folds_of(setting)
        is_shared = setting.has_finals and not setting.rules.follow_kafka("D10")
        self._clocks = [-1] * (1 if is_shared else len(self._folds))

    def take(self, message: Message, side: int, /) -> None:
        """See `Node`."""
        at = side if len(self._clocks) > 1 else 0
        self._fold, self._clock = self._folds[side], self._clocks[at]
        super().take(message, side)  # type: ignore[misc]
        self._clocks[at] = self._clock

    def take_watermark(self, watermark: int) -> None:
        """See `Node`."""
        self._clocks = [max(clock, watermark) for clock in self._clocks]


class CogroupedWindows(_Clocks, WindowAggregate):
    """One state per key and window of several streams."""


class CogroupedSliding(_Clocks, SlidingAggregate):
    """One state per key and sliding window of several streams."""


class CogroupedSessions(_Clocks, SessionAggregate):
    """One state per key and session of several streams."""
