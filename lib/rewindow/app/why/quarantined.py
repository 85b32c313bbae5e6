"""Records of a key in the quarantine: rows that `land` put there, as far as they tell, and what the job dropped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.app.why.history import History
from rewindow.control.plan.branches import run_ids
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
    reasons = [
        row["reason"]
        for batch in read_batches(path, of_feed & _contains(key))
        for row in batch.select(["topic", "reason", "record"]).to_pylist()
        if row["topic"] in past.output.layout.external and _has(row["record"], [*map(str, key)])
    ]
    if reasons:
        are, which = ("is", "") if len(reasons) == 1 else ("are", "the last one ")
        what = f"{counted(len(reasons), 'row')} with this key {are} in the quarantine"
        yield f"{what}, {which}because of: {reasons[-1]} (`rewindow head rewindow.quarantine`)"


def dropped_by_runs(past: History, own: Any, times: tuple[int, int] | None) -> Iterator[str]:
    """Yield how many records of a key the branch's runs put into the quarantine (`dropped: quarantine`), and why the last one.

    ``times``: the first time that counts, and the first after it. Of a repartitioned key, this is where its drops are.
    """
    path = table_path(past.output.tables.warehouse, QUARANTINE)
    if open_table(path) is None:
        return
    key = own if isinstance(own, tuple) else (own,)
    runs = pa.array(run_ids(past.output.branch.runs), pa.int64())
    of_runs = (pc.field("name") == past.output.job.name) & pc.field("_run").isin(runs)
    if times is not None:
        of_runs &= (pc.field("timestamp") >= times[0]) & (pc.field("timestamp") < times[1])
    reasons = [
        row["reason"]
        for batch in read_batches(path, of_runs & _contains(key))
        for row in batch.select(["reason", "record"]).to_pylist()
        if _key(row["record"]) == [*map(str, key)]
    ]
    if reasons:
        were, which = ("was", "") if len(reasons) == 1 else ("were", "the last one ")
        what = f"{counted(len(reasons), 'record')} with this key {were} dropped"
        yield f"{what}, {which}because of: {reasons[-1]} (`rewindow head rewindow.quarantine`)"


def _contains(key: tuple[Any, ...]) -> pc.Expression:
    """Return a condition that few rows without the key fulfil."""
    found = pc.scalar(True)
    for part in key:
        if isinstance(part, str):  # numbers may be written in other ways
            found &= pc.match_substring(pc.field("record"), json.dumps(part, ensure_ascii=False)[1:-1])
    return found


def _key(record: str | None) -> list[str]:
    """Return the parts of the key of a record that a run dropped."""
    key: Any = json.loads(record or "{}").get("key")
    parts = key.values() if isinstance(key, dict) else key if isinstance(key, list) else [key]
    return [*map(str, parts)]


def _has(record: str | None, parts: list[str]) -> bool:
    """Whether a quarantined row has the parts of a key among its columns, or in its text if it could not be parsed."""
    columns: Any = json.loads(record or "{}")
    texts = [str(value) for value in (columns.values() if isinstance(columns, dict) else [columns])]
    return all(part in texts or (len(texts) == 1 and part in texts[0]) for part in parts)
