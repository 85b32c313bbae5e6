"""Rows that the driver stages: metrics, as a block for the digests and as rows for the view, held until the run is true."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

from rewindow.contracts.staged_files import StagedFile
from rewindow.control.plan.planned_tasks import METRICS_TARGET
from rewindow.control.plan.stored_rows import stored_json
from rewindow.engine.worker.staging import StagingTarget, stage_rows
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.blocks import file_row, journal_row
from rewindow.tables.governed.journal import SparkJournal
from rewindow.tables.governed.own_table import METRIC

DRIVER = 1_000_000
"""The journal's sub-topology number for what the driver stages."""


def hold_rows(
    journal: SparkJournal, target: str, attempt: str, columns: Sequence[Column], rows: Iterable[tuple[Any, ...]]
) -> list[StagedFile]:
    """Let the journal hold a few rows as a block, and metrics also one by one, for the view."""
    listed = list(rows)
    with tempfile.TemporaryDirectory(prefix="rewindow-") as folder:
        files = stage_rows(StagingTarget(target, folder, attempt=attempt, partition=0), columns, listed)
        journal.hold(attempt, [file_row(DRIVER, 0, attempt, file, folder) for file in files])
    if target == METRICS_TARGET:
        names = [column.name for column in columns]
        texts = [stored_json(dict(zip(names, row, strict=True))) for row in listed]
        journal.hold(attempt, [journal_row(DRIVER, 0, METRIC, "", text, None) for text in texts])
    return files
