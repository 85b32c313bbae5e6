"""What logs are published from does not depend on how many appends a stored fold covers."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rewindow.contracts.tasks import LogSpan
from rewindow.control.ingest.landings import GENERATION, LANDING, PLAN, LandedRange
from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.stored_rows import StoredFold
from rewindow.streams.record import TopicPartition
from rewindow.tables.governed.ledger import KeptFold
from rewindow.tables.governed.log_tables import QUARANTINED, is_covered, landed_appends, to_store

TOPICS = ("clicks", "orders")
LANDED = st.tuples(st.sets(st.sampled_from(TOPICS)), st.booleans())
"""The topics with rows of a landing, and whether it has quarantined rows."""
APPENDS = st.lists(st.none() | st.lists(LANDED, max_size=2), min_size=1, max_size=8)
"""A PLAN, or landings. Before the first of them comes a generation, before some others too."""


def staged(topic: str, path: str) -> dict[str, Any]:
    facts = {"rows": 1, "bytes": 1, "file_digest": "d", "rows_digest": "d", "stats": {}, "partition_values": {}}
    return {"target": f"log/{topic}" if topic else "quarantine", "partition": 0, "path": path, **facts}


def ledger(drawn: list[list[Any] | None], begin: set[int]) -> list[list[LedgerRow]]:
    """Return the rows of a feed's ledger, grouped by append."""
    appends, generation, landing = [], 0, 0
    for at, landed in enumerate(drawn):
        if landed is None:
            appends.append([LedgerRow(0, PLAN, {})])
            continue
        rows = []
        if not generation or at in begin:
            generation += 1
            rows.append(LedgerRow(0, GENERATION, {"generation": generation, "logs": dict.fromkeys(TOPICS, "{}")}))
        for topics, is_refused in landed:
            landing += 1
            files = {topic: [staged(topic, f"{landing}-{topic}")] for topic in sorted(topics)}
            refused = {"orders": [staged("", f"{landing}-bad")]} if is_refused else {}
            body = {"landing": landing, "attempt": f"a{at}", "files": files, "quarantine": refused}
            rows.append(LedgerRow(0, LANDING, body))
        appends.append(rows)
    return appends


@given(APPENDS, st.sets(st.integers(0, 7)), st.data())
def test_what_is_due_is_the_same_after_a_stored_fold(drawn, begin, data) -> None:
    appends = ledger(drawn, begin)
    covered = data.draw(st.integers(0, len(appends)))
    whole = landed_appends(None, appends)
    landed = json.loads(json.dumps(to_store(landed_appends(None, appends[:covered]), {})))
    kept = KeptFold(StoredFold(0, "", frozenset(), ()), covered, (), landed)
    found = landed_appends(kept if landed["generations"] else None, appends[covered:])
    assert [one.definition for one in found] == [one.definition for one in whole]
    for one, every in zip(found, whole, strict=True):
        assert one.number == every.number
        for topic in (*TOPICS, QUARANTINED):
            assert one.last_of(topic) == every.last_of(topic)
            assert one.due(topic) == tuple(due for due in every.due(topic) if due[0] > one.before)


def test_offsets_before_the_end_of_a_fold_are_in_rows_that_it_covers() -> None:
    landed = json.loads(json.dumps(to_store([], {TopicPartition("clicks", 0): LandedRange(4, 10, 0, 0)})))
    kept = KeptFold(StoredFold(0, "", frozenset(), ()), 3, (), landed)
    assert is_covered(kept, "clicks", 0, [LogSpan(1, 9, 20)])
    assert not is_covered(kept, "clicks", 0, [LogSpan(1, 10, 20)])
    assert not is_covered(kept, "clicks", 1, [LogSpan(1, 0, 20)])
    assert not is_covered(kept, "orders", 0, [LogSpan(1, 0, 20)])
