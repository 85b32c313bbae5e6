"""The rules of a feed's file that the health of a branch depends on."""

from __future__ import annotations

from pathlib import Path

from rewindow.config.load import load_feed
from rewindow.control.health.inputs import FeedRules, Unknown, known


def rules_of(root: Path, feed: str) -> FeedRules | Unknown:
    """Return from a feed's file what the status of its jobs depends on: the lag of the watermark, and the logs."""
    spec = known(lambda: load_feed(root, feed))
    return spec if isinstance(spec, Unknown) else FeedRules(spec.lag_ms, frozenset(spec.logs))
