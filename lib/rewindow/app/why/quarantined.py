"""Rows of a key that `land` put into the quarantine, as far as their columns or texts tell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc

from rewindow.app.why.history import History
from rewindow.report.text import counted
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.delta.content_hash import read_batches
from rewindow.tables.shared.paths import QUARANTINE


def quarantined(past: History, own: Any) -> Iterator[str]:
    """Yield how many quarantined rows of the feed's landings have the key, and why the last of them; nothing if none has it."""
    feed, path = past.output.job.feed, table_path(past.output.tables.warehouse, QUARANTINE)
    if not any((one.counts or {}).get("quarantined") for one in feed.landings) or open_table(path) is None:
        return
    key = own if isinstance(own, tuple) else (own,)
    of_feed = (pc.field("name") == feed.definition.feed) & pc.field("node").is_null()
    for part in key:
        if isinstance(part, str):  # numbers may be written in other ways
            of_feed &= pc.match_substring(pc.field("record"), json.dumps(part, ensure_ascii=False)[1:-1])
    reasons = [
        row["reason"]
        for batch in read_batches(path, of_feed)
        for row in batch.select(["topic", "reason", "record"]).to_pylist()
        if row["topic"] in past.output.layout.external and _has(row["record"], [*map(str, key)])
    ]
    if reasons:
        are, which = ("is", "") if len(reasons) == 1 else ("are", "the last one ")
        what = f"{counted(len(reasons), 'row')} with this key {are} in the quarantine"
        yield f"{what}, {which}because of: {reasons[-1]} (`rewindow head rewindow.quarantine`)"


def _has(record: str | None, parts: list[str]) -> bool:
    """Whether a quarantined row has the parts of a key among its columns, or in its text if it could not be parsed."""
    columns: Any = json.loads(record or "{}")
    texts = [str(value) for value in (columns.values() if isinstance(columns, dict) else [columns])]
    return all(part in texts or (len(texts) == 1 and part in texts[0]) for part in parts)
