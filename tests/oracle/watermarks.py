"""Watermarks (D22): below a node that holds results back, the watermark is lowered by the longest possible delay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.oracle.nodes import Node
from tests.oracle.queues import LARGEST
from tests.oracle.suppress import windows_above


def held_back(node: Node) -> int:
    """Return how far the timestamp of a node's result can be behind the time at which it is sent."""
    spec = node.setting.spec
    if spec["op"] == "stream_stream_join" and spec["how"] != "inner":
        span: int = max(spec["before"], 0) + max(spec["after"], 0)
        return span + int(spec["grace"])
    if spec.get("until") == "time_limit":
        limit: int = spec["ms"]
        return limit
    windows = windows_above(node)
    if windows is None:
        return 0
    is_final = spec.get("until") == "window_closes"
    emits = spec["op"] == "aggregate" and windows.get("emit") == "window_close"
    return longest(windows) if is_final or emits else 0


def longest(windows: Mapping[str, Any]) -> int:
    """Return the longest time until a window closes, from the smallest possible timestamp of its result (a session's end)."""
    grace: int = windows.get("grace", 0)
    if windows["type"] == "session":
        gap: int = windows["gap"]
        return gap + grace + 1
    if windows["type"] == "sliding":
        difference: int = windows["diff"]
        return difference + grace + 1
    size: int = windows.get("size", LARGEST)
    return size + grace


def lag(node: Node) -> int:
    """Return by how much the watermark is lowered above a node: the longest total delay on a path from any source."""
    return max((lag(parent) + held_back(parent) for parent in node.setting.parents), default=0)
