"""Joins of two streams for tests: ``L`` and ``R`` go to ``out``."""

from __future__ import annotations

from typing import Any

from rewindow import JoinWindows, StreamsBuilder, Topology


def pair(left: Any, right: Any) -> str:
    return f"{left or 'null'}-{right or 'null'}"


def within(before: int, after: int | None = None, grace: int = 0) -> JoinWindows:
    windows = JoinWindows.of("1d", grace=f"{grace}ms").before(f"{before}ms")
    return windows.after(f"{before if after is None else after}ms")


def topology(how: str, windows: JoinWindows, **options: Any) -> Topology:
    builder = StreamsBuilder()
    left, right = builder.stream("L"), builder.stream("R")
    verbs = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}
    verbs[how](right, pair, windows, name="j", **options).to("out")
    return builder.build()
