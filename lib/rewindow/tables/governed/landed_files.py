"""The blocks of a log's partition, from the feed's landing ledger: what tasks read without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rewindow.contracts.staged_files import StagedFile
from rewindow.contracts.tasks import LogFile, LogSpan
from rewindow.control.ingest.landings import LANDING
from rewindow.control.plan.job_state import LedgerRow
from rewindow.tables.governed.blocks import ROOT, block_path
from rewindow.tables.governed.landed_appends import is_covered
from rewindow.tables.governed.ledger import SparkLedger


def landed_files(ledger: SparkLedger, topic: str, partition: int, spans: Sequence[LogSpan]) -> list[LogFile]:
    """Return the landed blocks of a partition that have an offset of the spans, in offset order."""
    (kept, _), rows = ledger.later(), ledger.read()
    is_later = kept is not None and not is_covered(kept, topic, partition, spans)
    return _files(rows.later if is_later else rows, topic, partition, spans)


def _files(rows: Iterable[LedgerRow], topic: str, partition: int, spans: Sequence[LogSpan]) -> list[LogFile]:
    found = []
    for row in rows:
        if row.kind != LANDING:
            continue
        for staged in map(StagedFile.from_json, row.body["files"].get(topic, ())):
            values = {name: int(value) for name, value in staged.partition_values.items()}
            first, last = staged.stats["minValues"]["offset"], staged.stats["maxValues"]["offset"]
            if values["partition"] == partition and any(
                span.generation == values["generation"] and first <= span.last and last >= span.first for span in spans
            ):
                path = block_path(row.body["attempt"], f"log/{topic}", staged.path)
                found.append(LogFile(f"{ROOT}{path}", first, last))
    return sorted(found, key=lambda file: file.first)
