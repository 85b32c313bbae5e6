"""A job's stores as tables for people, from the blocks of the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rewindow.contracts.staged_files import StagedFile
from rewindow.control.plan.branch_decisions import check_has_state
from rewindow.control.plan.branches import CommittedRun, JobState
from rewindow.control.plan.spec import CHANGELOG
from rewindow.engine.spark.errors import mapped
from rewindow.errors import StorageError, UsageError
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.meta_columns import PARTITION
from rewindow.streams.state.stores import JOIN, SESSION, WINDOW
from rewindow.tables.governed.blocks import block_path, rows_of_block
from rewindow.tables.governed.warehouse import CatalogTables
from rewindow.tables.shared.arrow_schema import arrow_schema
from rewindow.tables.shared.checkpoint import since_last_added

_EXPIRES_BY = {WINDOW: "window_start", SESSION: "window_end", JOIN: "_record_time"}
"""By kind of store, the column that says when a row expires without a tombstone."""


class CatalogStores:
    """The stores of a job after one run."""

    def __init__(self, tables: CatalogTables, state: JobState, run: CommittedRun) -> None:
        """Bind to a run. Raises `CheckpointError` (76) if its state was forgotten."""
        check_has_state(state, run.spec.run)
        self._tables, self._state, self._run = tables, state, run
        self._binding = run.spec.binding

    def rows(self, store: str) -> pa.Table:
        """Return a store's rows, sorted by key.

        Raises `UsageError` (2) for an unknown store, `StorageError` (74) if the journal lacks a block.
        """
        keys = self.keys(store)
        changes = self._changes(store)
        numbered = changes.append_column("_row", pa.array(range(changes.num_rows), pa.int64()))
        last = numbered.group_by([PARTITION, *keys], use_threads=False).aggregate([("_row", "max")])["_row_max"]
        current = changes.take(last).filter(pc.invert(pc.field("_tombstone"))).drop_columns(["_run", "_tombstone"])
        rows = self._without_expired(store, current)
        return rows.sort_by([(name, "ascending") for name in keys]) if rows.num_rows else rows

    def keys(self, store: str) -> Sequence[str]:
        """Return the names of a store's key columns. Raises `UsageError` (2) for an unknown store."""
        if store not in self._binding.stores:
            known = ", ".join(sorted(self._binding.stores)) or "none"
            raise UsageError(f"there is no store {store!r}: run {self._run.spec.name} has {known}")
        return self._binding.keys[store]

    def _changes(self, store: str) -> pa.Table:
        """Return the rows of a store's changelog that a restore reads, in the order of the runs: later rows of a key win."""
        target = f"{CHANGELOG}{store}"
        schema = arrow_schema(self._binding.tables[target].columns)
        runs = since_last_added(self._state.basis(self._run.spec.run), target)
        paths = [
            (block_path(run.commit.attempt, target, file.path), file.partition_values)
            for run in runs
            for file in self._files(run, target)
        ]
        blocks = self._blocks([run.commit.attempt for run in runs]) if paths else {}
        missing = next((path for path, _ in paths if path not in blocks), None)
        if missing is not None:
            raise StorageError(f"the journal lacks the block {missing}, which was committed: restore it from a copy")
        return pa.concat_tables(
            [schema.empty_table(), *(_filled(blocks[path], values, schema) for path, values in paths)]
        )

    def _blocks(self, attempts: Sequence[str]) -> dict[str, bytes]:
        with mapped():
            found = self._tables.journal(self._run.spec.job).blocks(attempts).collect()
        return {row["path"]: bytes(row["data"]) for row in found}

    def _files(self, run: CommittedRun, target: str) -> list[StagedFile]:
        return [file for report in self._tables.reports(run) for file in report.files if file.target == target]

    def _without_expired(self, store: str, rows: pa.Table) -> pa.Table:
        """Leave out the rows that the store's clock has expired: they have no tombstones."""
        described = next(one for part in self._binding.topology for one in part["stores"] if one["name"] == store)
        at = _EXPIRES_BY.get(described["kind"])
        if not described["retention_ms"] or at not in rows.column_names:
            return rows
        reports = self._tables.reports(self._run)
        clocks = {
            report.partition: clock_ms
            for report in reports
            for name, clock_ms in report.state.get("store_clocks", {}).items()
            if name == store
        }
        oldest = [clocks.get(part, UNKNOWN) - described["retention_ms"] for part in rows[PARTITION].to_pylist()]
        return rows.filter(pc.greater(rows[at], pa.array(oldest, pa.int64())))


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
