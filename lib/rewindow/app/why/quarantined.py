"""Records of a key in the quarantine: rows that `land` put there, if their key is known, and records that the job dropped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rewindow.app.why.history import History
from rewindow.control.health.phrases import counted, see_quarantined
from rewindow.control.plan.job_state import run_ids
from rewindow.tables.shared.quarantine import Chosen


def quarantined(past: History, own: Any) -> Iterator[str]:
    """Yield how many quarantined rows of the feed's landings have the key, and why the last of them; nothing if none has it."""
    feed, topics = past.output.job.feed, past.output.layout.external
    if not any((one.counts or {}).get("quarantined") for one in feed.landings):
        return
    of_feed = Chosen(feed.definition.feed, is_landing=True)
    key, logs = _parts(own), feed.definition.logs
    reasons = [
        row["reason"]
        for row in _rows(past, of_feed, own)
        if row["topic"] in topics and _has(row["record"], [column.name for column in logs[row["topic"]].key], key)
    ]
    yield from _told(reasons, feed.definition.feed, "row", "is in the quarantine", "are in the quarantine")


def dropped_by_runs(past: History, own: Any, times: tuple[int, int] | None) -> Iterator[str]:
    """Yield how many records of a key the branch's runs put into the quarantine (`dropped: quarantine`), and why the last one.

    ``times``: the first and the last time that count. The drops of a repartitioned key are only in the quarantine. A record
    counts once, and only if a node that leads to the output dropped it.
    """
    runs, nodes = [*run_ids(past.output.branch.runs)], sorted(past.output.layout.leads_to_output())
    of_runs = Chosen(past.output.job.name, runs=runs, nodes=nodes, times=times)
    reasons = {
        (row["topic"], row["partition"], number if row["topic"] is None else row["offset"]): row["reason"]
        for number, row in enumerate(_rows(past, of_runs, own))  # a punctuation's records have no place
        if _key(row["record"]) == _parts(own)
    }
    yield from _told([*reasons.values()], past.output.job.name, "record", "was dropped", "were dropped")


def _told(reasons: Sequence[str], of: str, what: str, one: str, many: str) -> Iterator[str]:
    """Yield their number, their outcome, and the last reason; nothing if there are none. ``of`` is the job or feed."""
    if reasons:
        verb, which = (one, "") if len(reasons) == 1 else (many, "the last one ")
        found = f"{counted(len(reasons), what)} with this key {verb}"
        yield f"{found}, {which}because of: {reasons[-1]} (`{see_quarantined(of)}`)"


def _rows(past: History, chosen: Chosen, own: Any) -> Iterator[dict[str, Any]]:
    """Yield the place, reason and record of the chosen rows that contain the texts of a key."""
    quarantine = past.output.tables.quarantine([past.output.job.feed.definition.feed])
    if quarantine is None:
        return
    parts = own if isinstance(own, tuple) else (own,)
    # numbers may be written in other ways
    texts = [json.dumps(part, ensure_ascii=False)[1:-1] for part in parts if isinstance(part, str)]
    for batch in quarantine.batches(replace(chosen, texts=texts)):
        yield from batch.select(["topic", "partition", "offset", "reason", "record"]).to_pylist()


def _parts(own: Any) -> list[str]:
    return [*map(str, own if isinstance(own, tuple) else (own,))]


def _key(record: str | None) -> list[str]:
    """Return the parts of the key of a record that a run dropped."""
    key: Any = json.loads(record or "{}").get("key")
    parts = key.values() if isinstance(key, dict) else key if isinstance(key, list) else [key]
    return [*map(str, parts)]


def _has(record: str | None, names: Sequence[str], parts: list[str]) -> bool:
    """Whether a quarantined row has the parts of a key in the key's columns, or in its text if it could not be parsed."""
    columns: Any = json.loads(record or "{}")
    if isinstance(columns, dict) and columns.keys() >= set(names):
        return [str(columns[name]) for name in names] == parts
    texts = [str(value) for value in (columns.values() if isinstance(columns, dict) else [columns])]
    return all(part in texts or (len(texts) == 1 and part in texts[0]) for part in parts)
