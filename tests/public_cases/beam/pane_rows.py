"""The job of all trigger transcripts: one row for each window that has the elements of Beam's pane, at the time of the pane."""

from __future__ import annotations

from functools import partial

from rewindow import (
    EmitStrategy,
    FixedKeyProcessor,
    Record,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    Window,
    until_window_closes,
)

GAP_MS = 9
"""Beam's sessions with a gap of 10 exclude a gap of exactly 10, and those of Kafka include it."""


def bounds(window: Window, windows: str) -> tuple[int, int]:
    """Return the first and the last millisecond of a window, as Beam writes it."""
    return window.start_ms, window.end_ms + (GAP_MS if windows == "sessions" else -1)


class Timed(FixedKeyProcessor):
    """Give each row the time of its pane: ``latest`` element, ``earliest`` element, or ``end`` of the window."""

    def __init__(self, windows: str, time: str) -> None:
        self.windows, self.time = windows, time

    def process(self, record: Record) -> None:
        if record.value is None:  # a session that was merged into another one
            return
        times = {
            "latest": record.timestamp,
            "earliest": record.value[0],
            "end": bounds(record.key.window, self.windows)[1],
        }
        self.context.forward(record.with_timestamp(times[self.time]))


def added(_key: str, element: int, elements: list[int]) -> list[int]:
    return sorted([*elements, element])


def merged(_key: str, one: list[int], other: list[int]) -> list[int]:
    return sorted([*one, *other])


def build_topology(windows: str = "fixed", rows: str = "final", time: str = "latest", grace: str = "0s") -> Topology:
    """``rows``: ``final`` rows from a suppress, rows ``on_close`` of their window, or ``updates``, one for each element."""
    builder = StreamsBuilder()
    elements = builder.stream("elements").group_by_key()
    if windows == "sessions":
        sessions = elements.windowed_by(SessionWindows.of(f"{GAP_MS}ms", grace=grace))
        table = sessions.aggregate(list, added, merged, store="panes", value=list[int])
    else:
        fixed = elements.windowed_by(TimeWindows.of("10ms", grace=grace))
        if rows == "on_close":
            fixed = fixed.emit_strategy(EmitStrategy.on_window_close())
        table = fixed.aggregate(list, added, store="panes", value=list[int])
    if rows == "final":
        table = table.suppress(until_window_closes())
    table.to_stream().process_values(partial(Timed, windows, time), name="timed", value=list[int]).to("panes-sent")
    return builder.build()
