"""What to say about a feed that was never landed: what waits in its sources, and when it can be landed."""

from __future__ import annotations

import time
from collections.abc import Callable

from rewindow.config.feed import FeedConfig
from rewindow.config.feed_spec import TABLE_FORMATS, feed_spec
from rewindow.contracts.ingest import SourceLook, SourceSpec
from rewindow.control.ingest.waiting import next_complete, waiting_files
from rewindow.errors import RewindowError


def lands_next(
    config: FeedConfig, look: Callable[[SourceSpec, None], SourceLook], *, project_root: str, warehouse: str
) -> str:
    """Return a sentence to add to a message; empty without intervals of arrival, because then anything can be landed.

    ``look`` inspects a source of files. Sources that it cannot inspect are left to `land`.
    """
    if config.landing.every is None:
        return ""
    now_ms = round(time.time() * 1000)
    feed = feed_spec(config, project_root=project_root, warehouse=warehouse)
    files = [spec for spec in feed.logs if spec.source.format not in TABLE_FORMATS]
    try:
        waiting = waiting_files(feed, {spec.topic: look(spec.source, None) for spec in files}, now_ms)
    except RewindowError:  # `land` reports it
        waiting = ""
    when = waiting or next_complete(feed, now_ms, now_ms)
    return f". With `every: {config.landing.every}` it lands complete intervals only: {when}"
