"""Digests of what changes rows: all of a feed that its landed records depend on, and what time means to a job."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from rewindow.config.feed import FeedConfig
from rewindow.config.job import JobConfig
from rewindow.config.value import ConfigValue


def feed_fingerprint(feed: FeedConfig) -> str:
    """Return the digest of what a generation of a feed is landed under.

    All but what holds for later landings only: lag, max_ahead, max_task_idle, watermark.
    """
    every = feed.landing.every
    return _digest(feed, {"lag_ms", "max_task_idle_ms", "landing"}, every=str(every) if every else None)


def semantics_fingerprint(job: JobConfig) -> str:
    """Return the digest of a job's ``semantics``. A default that is written out counts as one that is not."""
    return _digest(job.semantics)


def _digest(value: ConfigValue, without: set[str] | None = None, **more: str | None) -> str:
    """Digest a value's canonical JSON. Defaults are left out, so that a later version's new key changes no digest."""
    data: dict[str, Any] = value.model_dump(by_alias=True, exclude_defaults=True, exclude=without, warnings=False)
    data.update((key, word) for key, word in more.items() if word is not None)
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()
