"""The rows of a store's changelog, which are blocks of the journal: no store has a table of its own here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rewindow.control.plan.job_state import CommittedRun
from rewindow.control.plan.spec import CHANGELOG
from rewindow.tables.governed.blocks import block_path, rows_of_block
from rewindow.tables.governed.journal import SparkJournal
from rewindow.tables.shared.arrow_schema import arrow_schema
from rewindow.tables.shared.checkpoint import since_last_added
from rewindow.tables.shared.publications import Reports


def store_changes(
    journal: SparkJournal, run: CommittedRun, basis: Sequence[CommittedRun], stores: Sequence[str], reports: Reports
) -> dict[str, pa.Table]:
    """Return what a restore of some stores reads, in the order of the runs. ``basis``: see `JobState.basis`.

    One query fetches all blocks. Raises `StorageError` (74) if one is gone.
    """
    found = {store: _blocks_of(basis, store, reports) for store in stores}
    data = journal.block_data([path for blocks in found.values() for path, _ in blocks])
    changes = {}
    for store, blocks in found.items():
        schema = arrow_schema(run.spec.binding.tables[f"{CHANGELOG}{store}"].columns)
        rows = [_filled(data[path], values, schema) for path, values in blocks]
        changes[store] = pa.concat_tables([schema.empty_table(), *rows])
    return changes


def _blocks_of(basis: Sequence[CommittedRun], store: str, reports: Reports) -> list[tuple[str, Mapping[str, str]]]:
    """Return the path and the partition values of each block of a store's changelog that counts."""
    target = f"{CHANGELOG}{store}"
    return [
        (block_path(run.commit.attempt, target, file.path), file.partition_values)
        for run in since_last_added(basis, target)
        for report in reports(run)
        for file in report.files
        if file.target == target
    ]


def _filled(data: bytes, values: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Return a block's rows in the changelog's columns, with the values of its partition columns."""
    rows = rows_of_block(data)
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.chunked_array([pa.repeat(pa.scalar(values.get(field.name)).cast(field.type), rows.num_rows)])
        for field in schema
    ]
    return pa.table(columns, schema=schema)
