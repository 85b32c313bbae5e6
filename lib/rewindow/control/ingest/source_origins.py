"""Of what kind a source is: in one of another kind, the position of what was landed means nothing. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewindow.config.feed import TABLE_FORMATS
from rewindow.contracts.ingest import JOB

FILES = "files"


def kind_of(source_format: str) -> str:
    """Return the kind of a source, which is that of its positions: files, a table, or the output of a job."""
    return source_format if source_format in TABLE_FORMATS else FILES


def _kind_of_position(position: Mapping[str, Any]) -> str:
    """Return the kind of the source that a landed position is in."""
    kind: str = FILES if FILES in position else position["kind"]
    return kind


def position_of(landed: Mapping[str, Any] | None, source_format: str) -> Mapping[str, Any] | None:
    """Return a landed position; None without one, or if it is in a source of another kind."""
    return landed if landed and _kind_of_position(landed) == kind_of(source_format) else None


def is_same_origin(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether a declared source can have the positions of another one: it is of one kind, and of one job."""
    jobs = {source["name"].partition(":")[0] for source in (before, now) if source["format"] == JOB}
    return kind_of(before["format"]) == kind_of(now["format"]) and len(jobs) < 2


def kept_if(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Return on what condition logs without `every` can go on under another definition; None if they cannot."""
    conditions = []
    for topic, log in now["logs"].items():
        old = before.get("logs", {}).get(topic)
        if old is None:
            continue
        was, source = old["source"], log["source"]
        if not is_same_origin(was, source):
            return None
        if was["name"] != source["name"] and source["format"] != JOB:
            conditions.append(f"{source['name']} has all that was landed from {was['name']}")
    return f", if {' and '.join(conditions)}" if conditions else ""
