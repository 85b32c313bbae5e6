"""A job's stores as tables for people, from the blocks of the journal."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rewindow.control.plan.branch_decisions import check_has_state
from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.errors import UsageError
from rewindow.tables.governed.checkpoints import store_changes
from rewindow.tables.governed.warehouse import CatalogTables
from rewindow.tables.shared.checkpoints import current_rows, in_order


class CatalogStores:
    """The stores of a job after one run."""

    def __init__(self, tables: CatalogTables, state: JobState, run: CommittedRun) -> None:
        """Bind to a run. Raises `CheckpointError` (76) if its state was forgotten."""
        check_has_state(state, run.spec.run)
        self._tables, self._state, self._run = tables, state, run
        self._binding = run.spec.binding

    def rows(self, store: str) -> pa.Table:
        """Return a store's rows, sorted by key and partition.

        Raises `UsageError` (2) for an unknown store, `StorageError` (74) if the journal lacks a block.
        """
        keys, run = self.keys(store), self._run
        journal, basis = self._tables.journal(run.spec.job), self._state.basis(run.spec.run)
        changes = store_changes(journal, run, basis, [store], self._tables.reports)[store]
        return in_order(current_rows(changes, run, store, self._tables.reports(run)), keys)

    def keys(self, store: str) -> Sequence[str]:
        """Return the names of a store's key columns. Raises `UsageError` (2) for an unknown store."""
        if store not in self._binding.stores:
            known = ", ".join(sorted(self._binding.stores)) or "none"
            raise UsageError(
                "catalog-store-unknown",
                "there is no store {store!r}: run {run} has {stores}",
                store=store,
                run=self._run.spec.name,
                stores=known,
            )
        return self._binding.keys[store]
