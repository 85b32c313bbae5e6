"""A job's stores as tables for people: contents after a run, differences between two runs, and exports."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from rewindow.control.plan.branch_decisions import check_has_state
from rewindow.control.plan.job_state import CommittedRun, JobState
from rewindow.control.plan.spec import CHANGELOG
from rewindow.errors import UsageError
from rewindow.streams.serde.schema import PARTITION
from rewindow.tables.shared.arrow_tables import json_value
from rewindow.tables.shared.checkpoints import in_order
from rewindow.tables.shared.warehouse import Warehouse

FORMATS = ("parquet", "csv", "json")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoreChange:
    """A key of a store whose value, in one partition, differs between two runs.

    ``before``, ``after``: the values after the two runs; None if the partition does not have the key. ``in_several``: whether
    several partitions have this key, each with its own value. This is possible only in the store of a processor.
    """

    key: Row
    partition: int
    before: Row | None
    after: Row | None
    in_several: bool = False

    def as_json(self) -> Row:
        """Return the JSON form."""
        return {"key": self.key, "partition": self.partition, "before": self.before, "after": self.after}


class Stores:
    """The stores of a job after one run."""

    def __init__(self, tables: Warehouse, state: JobState, run: CommittedRun) -> None:
        """Bind to a run. Raises `CheckpointError` (76) if `gc` has deleted the state after the run."""
        check_has_state(state, run.spec.run)
        self._tables, self._state, self._run = tables, state, run
        self._binding = run.spec.binding

    def describe(self) -> list[Row]:
        """Describe each store: its number of entries, what a restore reads, the last run that changed it, and its columns."""
        return [self._describe(store) for store in sorted(self._binding.stores)]

    def rows(self, store: str, where: Mapping[str, str] | None = None) -> pa.Table:
        """Return a store's rows, sorted by key and partition. Raises `UsageError` (2) for an unknown store or column.

        ``where``: maps the name of a key column to a value as text. Only rows with these values are returned.
        """
        keys = self.keys(store)
        rows = self._tables.store_rows(self._state, self._run, store)
        for column, wanted in (where or {}).items():
            if column not in keys:
                raise UsageError(
                    "store-key-column-unknown",
                    "{column!r} is not a key column of store {store!r}: its key columns are {keys}",
                    column=column,
                    store=store,
                    keys=_listed(keys),
                )
            rows = rows.filter(pa.array([_text(value) == wanted for value in rows[column].to_pylist()], pa.bool_()))
        return in_order(rows, keys)

    def keys(self, store: str) -> Sequence[str]:
        """Return the names of a store's key columns. Raises `UsageError` (2) for an unknown store."""
        if store not in self._binding.stores:
            raise UsageError(
                "store-unknown",
                "there is no store {store!r}: run {run} has {stores}",
                store=store,
                run=self._run.spec.name,
                stores=_listed(self._binding.stores),
            )
        return self._binding.keys[store]

    def _describe(self, store: str) -> Row:
        target = f"{CHANGELOG}{store}"
        rows, size = self._tables.restored(self._state, self._run, store)
        changed = [run for run in self._state.chain_to(self._run.spec.run) if run.commit.rows_in(target)]
        columns = ", ".join(f"{name} {kind}" for name, kind in self._binding.stores[store])
        return {
            "store": store,
            "entries": self.rows(store).num_rows,
            "rows": rows,
            "bytes": size,
            "last_run": changed[-1].spec.name if changed else None,
            "columns": columns,
        }


def changes(before: pa.Table, second: pa.Table, keys: Sequence[str]) -> Iterator[StoreChange]:
    """Yield the entries whose values differ between two states of a store, in the order of keys and partitions."""
    old, new = _by_key(before, keys), _by_key(second, keys)
    entries = {**old, **new}
    copies = Counter(key for key, _partition in entries)
    for entry in sorted(entries, key=repr):
        if old.get(entry) != new.get(entry):
            key, partition = entry
            named = dict(zip(keys, key, strict=True))
            yield StoreChange(named, partition, old.get(entry), new.get(entry), in_several=copies[key] > 1)


def as_rows(rows: pa.Table) -> list[Row]:
    """Return rows as values that `json` can write."""
    return [{name: json_value(value) for name, value in row.items()} for row in rows.to_pylist()]


def export(rows: pa.Table, to: Path) -> None:
    """Write rows to a new file, in the format of its suffix. Raises `UsageError` (2) for another suffix or an existing file."""
    suffix = to.suffix.removeprefix(".").lower()
    if suffix not in FORMATS:
        raise UsageError(
            "export-format-unknown",
            "{file} has no known format: end its name with .{formats}",
            file=to,
            formats=", .".join(FORMATS),
        )
    if to.exists():
        raise UsageError("export-file-exists", "{file} exists already: name a new file, or remove that one", file=to)
    to.parent.mkdir(parents=True, exist_ok=True)
    if suffix == "parquet":
        pq.write_table(rows, to, write_page_checksum=True)
    elif suffix == "csv":
        texts = [column.cast(pa.string()) if pa.types.is_binary(column.type) else column for column in rows.columns]
        pc_csv.write_csv(pa.table(texts, names=rows.column_names), to)
    else:
        to.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in as_rows(rows)), encoding="utf-8")


def _by_key(rows: pa.Table, keys: Sequence[str]) -> dict[tuple[tuple[Any, ...], int], Row]:
    """Return the values by (key, partition), because the stores of several tasks may have the same key."""
    values = {}
    for row in as_rows(rows):
        entry = tuple(row[name] for name in keys), row[PARTITION]
        values[entry] = {name: value for name, value in row.items() if name not in keys and name != PARTITION}
    return values


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(json_value(value))
