"""Session and sliding windows aggregated as text, for tests."""

from __future__ import annotations

from typing import Any

from rewindow import (
    Materialized,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Windowed,
)
from rewindow.streams.record import MAX_MS
from rewindow.testing import TopologyTestDriver


def sessions(gap: int, grace: int = 0) -> SessionWindows:
    return SessionWindows.of(f"{gap}ms", grace=f"{grace}ms")


def sliding(difference: int, grace: int = 0) -> SlidingWindows:
    return SlidingWindows.of(f"{difference}ms", grace=f"{grace}ms")


def texts(windows: Any, retention: int | None = None) -> TopologyTestDriver:
    """Concatenate values as text, by window. The value ``del`` deletes the state."""
    builder = StreamsBuilder()
    functions: list[Any] = [str, lambda _key, value, text: None if value == "del" else f"{text}{value}"]
    if isinstance(windows, SessionWindows):
        functions.append(lambda _key, one, later: f"{one}{later}")
    grouped: Any = builder.stream("in").group_by_key().windowed_by(windows)
    store = Materialized.as_("texts", retention=None if retention is None else f"{retention}ms")
    grouped.aggregate(*functions, store=store).to_stream().to("out")
    return TopologyTestDriver(builder.build())


def told(driver: TopologyTestDriver) -> list[str]:
    """Return results as ``a[0,10]=12@9``."""
    return [f"{shown(record.key)}={record.value}@{record.timestamp}" for record in driver.read("out")]


def shown(key: Windowed) -> str:
    start_ms, end_ms, _ = key.window
    return f"{key.key}[{start_ms},{'MAX' if end_ms == MAX_MS else end_ms}]"


def counted(driver: TopologyTestDriver, name: str) -> int:
    return sum(row["total"] for row in driver.metrics if row["name"] == name)
