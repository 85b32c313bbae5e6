"""Hypothesis strategies for records and epochs, to test properties of your own topologies. Needs `hypothesis`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from rewindow.streams.record import UNKNOWN
from rewindow.testing.replay import Epoch


def records(
    topics: Sequence[str],
    *,
    keys: Sequence[Any] = ("a", "b", "c"),
    values: st.SearchStrategy[Any] | None = None,
    max_ms: int = 60,
    max_size: int = 12,
) -> st.SearchStrategy[list[tuple[str, Any, Any, int]]]:
    """Return a strategy for lists of ``(topic, key, value, timestamp)``, out of order and with many equal timestamps."""
    values = st.integers(0, 9) if values is None else values
    one = st.tuples(st.sampled_from(topics), st.sampled_from(keys), values, st.integers(0, max_ms))
    return st.lists(one, max_size=max_size)


@st.composite
def epochs(
    draw: st.DrawFn,
    topics: Sequence[str],
    *,
    keys: Sequence[Any] = ("a", "b", "c"),
    values: st.SearchStrategy[Any] | None = None,
    max_ms: int = 60,
    max_epochs: int = 5,
) -> list[Epoch]:
    """Return epochs with non-decreasing watermarks; the first epochs may have none.

    Records may be above or below the watermark.
    """
    drawn = []
    watermark_ms = UNKNOWN
    for number in range(draw(st.integers(1, max_epochs))):
        inputs = draw(records(topics, keys=keys, values=values, max_ms=max_ms * (number + 1)))
        if draw(st.booleans()):
            watermark_ms = max(watermark_ms, draw(st.integers(0, max_ms * (number + 1))))
        drawn.append(Epoch(tuple(inputs), watermark_ms))
    return drawn
