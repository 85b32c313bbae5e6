"""List the files of tables, and read and hash their rows. Equal hashes mean equal rows (L2).

Rows are read with Arrow from the files that the Delta log names. `DeltaTable.to_pyarrow_table` is not used: it sometimes
aborts the interpreter at exit (134), and it silently returns nulls if the table has column mapping.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from rewindow.errors import StorageError
from rewindow.streams.serde.schema import OUTPUT_META, Column
from rewindow.tables.delta.broken_log import way_out
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.handle import Handle
from rewindow.tables.delta.open_table import added_files, existing_table, open_table
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.content_hash import hash_rows

_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_FACTS = {"path", "num_records", "size_bytes", "min._run", "max._run", "min.seq", "max.seq"}
_CONVERTED: Mapping[str, Callable[[str], Any]] = {"string": str, "integer": int, "long": int}
"""Maps a type of partition columns to the function that converts a value from the text in the Delta log."""
_TYPES = {"string": "string", "long": "long", "double": "double", "boolean": "boolean", "binary": "binary"}
_BATCH_ROWS = 100_000
_WRITTEN = [(name, "ascending") for name in ("_epoch", "_partition", "_offset")]


class TableFile(NamedTuple):
    """A file of a table. ``path`` is relative to the table. ``partition``: maps each partition column to its value in the file.

    ``first_run``, ``last_run``: the smallest and the largest ``_run`` of its rows; None if the log does not state them.
    ``first_seq``, ``last_seq``: the smallest and the largest number of its rows, in a ledger.

    ``rows`` is None for a file without statistics. Only writers other than rewindow add such files; see `rows_of`.
    """

    path: str
    rows: int | None
    bytes: int
    partition: dict[str, Any]
    first_run: int | None
    last_run: int | None
    first_seq: int | None = None
    last_seq: int | None = None


def kept_by_merge(sizes: Sequence[int]) -> int:
    """Return how many of the oldest files a merge leaves as they are. ``sizes``: the sizes of its small files, in order.

    A file is merged if the later files together are at least as large as it is. So each row is rewritten a few times, not in
    each merge. Few files are left, because each one is larger than all later files together.
    """
    kept, later = 0, sum(sizes)
    for size in sizes:
        later -= size
        if size <= later:
            break
        kept += 1
    return kept


def table_files(path: str, table: DeltaTable, *, runs: Collection[int] | None = None) -> list[TableFile]:
    """Return a table's files, sorted by path.

    ``runs``: files that have only rows of one run are left out if that run is not among ``runs``.

    Raises `StorageError` (74) if reading the files would not give the table's rows.
    """
    _check_readable(path, table)
    files = _known_files(path, table).values() if isinstance(table, Handle) else _listed(path, table)
    wanted = (file for file in files if runs is None or not _is_of_another(file, runs))
    return sorted(wanted, key=lambda file: file.path)


def _is_of_another(file: TableFile, runs: Collection[int]) -> bool:
    """Return whether a file has only rows of one run, which is not among ``runs``."""
    return file.first_run is not None and file.first_run == file.last_run and file.first_run not in runs


def _known_files(path: str, table: Handle) -> dict[str, TableFile]:
    """Return a table's files by path. The handle lists and caches them once, and then adds the files of append commits."""
    if table.files is not None and table.new_files:
        types = _column_types(table)
        new = [_added(add, types) for add in table.new_files]
        if None in new:
            # Only delta-rs converts partition values of other types. So it lists all files again.
            table.files = None
        else:
            files = [file for file in new if file is not None]
            names = sorted({name for file in files for name in file.partition})
            check_folders(
                path,
                [file.path for file in files],
                {name: [file.partition.get(name) for file in files] for name in names},
            )
            table.files.update({file.path: file for file in files})
    if table.files is None:
        table.files = {file.path: file for file in _listed(path, table)}
    table.new_files.clear()
    return table.files


def _column_types(table: DeltaTable) -> dict[str, Any]:
    return {field["name"]: field["type"] for field in json.loads(table.schema().to_json())["fields"]}


def _added(add: Mapping[str, Any], types: Mapping[str, Any]) -> TableFile | None:
    """Return the file that an ``add`` action describes; None if it has a partition value that only delta-rs converts."""
    stats = json.loads(add.get("stats") or "{}")
    bounds = [(stats.get(bound) or {}).get(name) for name in ("_run", "seq") for bound in ("minValues", "maxValues")]
    texts: Mapping[str, str | None] = add.get("partitionValues") or {}
    if not all(types.get(name) in _CONVERTED for name in texts):
        return None
    partition = {name: None if text is None else _CONVERTED[types[name]](text) for name, text in texts.items()}
    return TableFile(unquote(add["path"]), stats.get("numRecords"), add["size"], partition, *bounds)


def _listed(path: str, table: DeltaTable) -> list[TableFile]:
    actions = added_files(table)
    names = [name for name in actions.column_names if name in _FACTS or name.startswith("partition.")]
    columns = {name: actions[name].to_pylist() for name in names}
    nothing = [None] * actions.num_rows
    partitions = {name.removeprefix("partition."): columns[name] for name in columns if name.startswith("partition.")}
    check_folders(path, columns["path"], partitions)
    return [
        TableFile(
            unquote(file),
            columns.get("num_records", nothing)[index],
            columns["size_bytes"][index],
            {name: values[index] for name, values in partitions.items()},
            columns.get("min._run", nothing)[index],
            columns.get("max._run", nothing)[index],
            columns.get("min.seq", nothing)[index],
            columns.get("max.seq", nothing)[index],
        )
        for index, file in enumerate(columns["path"])
    ]


def read_rows(path: str, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
    """Return a table's rows in arbitrary order, partition columns included.

    ``where`` is an Arrow expression over any of the table's columns. Raises `StorageError` (74) if there is no table.
    """
    table = existing_table(path)
    schema, folder = table_schema(table), Folder(path)
    files = (read_file(folder, file, schema) for file in table_files(path, table))
    # Files are read one by one, so that only the wanted rows and columns are in memory together.
    parts = [_chosen(rows, columns, where) for rows in files]
    return pa.concat_tables(parts) if parts else _chosen(schema.empty_table(), columns, where)


def _chosen(rows: pa.Table, columns: Sequence[str] | None, where: pc.Expression | None) -> pa.Table:
    rows = rows if where is None else rows.filter(where)
    return rows if columns is None else rows.select(list(columns))


def count_rows(path: str) -> int:
    """Return how many rows a table has; 0 if there is no table. Only files without statistics are opened."""
    table, folder = open_table(path), Folder(path)
    return sum(rows_of(folder, file) for file in table_files(path, table)) if table else 0


def rows_of(folder: Folder, file: TableFile) -> int:
    """Return how many rows a file has. Reads the footer if there are no statistics. Raises `StorageError` (74) if it is gone."""
    if file.rows is not None:
        return file.rows
    with folder.open_parquet(file.path) as parquet:
        return int(parquet.metadata.num_rows)


def files_without_runs(table: DeltaTable) -> set[str]:
    """Return the files whose rows, according to the log, belong to no run: rows that landings sent to the quarantine."""
    actions = added_files(table)
    if "null_count._run" not in actions.column_names:
        return set()
    is_without = pc.equal(actions["null_count._run"], actions["num_records"])
    return {unquote(path) for path in actions["path"].filter(is_without).to_pylist()}


def files_of_job(path: str, table: DeltaTable, column: str, job: str) -> list[TableFile]:
    """Return the files of a shared table that may have rows of a job. Only the loss of such a file concerns the job.

    ``column``: the column with the job of a row.
    """
    bounds, without_runs = column_bounds(table, column), files_without_runs(table)
    return [
        file
        for file in table_files(path, table)
        if file.path not in without_runs and may_have(bounds.get(file.path, (None, None)), [job])
    ]


def column_bounds(table: DeltaTable, column: str) -> dict[str, tuple[Any, Any]]:
    """Return the smallest and largest value of a column in each file, by path; None for a value that the log does not state."""
    actions = added_files(table)
    nothing = [None] * actions.num_rows
    smallest, largest = (
        actions[f"{which}.{column}"].to_pylist() if f"{which}.{column}" in actions.column_names else nothing
        for which in ("min", "max")
    )
    paths = [unquote(path) for path in actions["path"].to_pylist()]
    return dict(zip(paths, zip(smallest, largest, strict=True), strict=True))


def read_batches(path: str, where: pc.Expression | None = None) -> pa.RecordBatchReader:
    """Return a reader of a table's rows, batch by batch. ``where``: see `read_rows`."""
    table = existing_table(path)
    schema, folder = table_schema(table), Folder(path)
    batches = (
        batch
        for file in table_files(path, table)
        for rows in file_batches(folder, file, schema)
        for batch in (rows if where is None else rows.filter(where)).to_batches()
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


def rows_of_key(path: str, key: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return the rows whose key columns have one of the given values, in the order in which they were written.

    Files whose bounds exclude the key are not read. Raises `StorageError` (74) for a file that cannot be read.
    """
    table = existing_table(path)
    files, schema, folder = table_files(path, table), table_schema(table), Folder(path)
    for name, values in key.items():
        bounds = column_bounds(table, name)
        files = [file for file in files if may_have(bounds[file.path], values)]
    batches = (rows for file in files for rows in file_batches(folder, file, schema))
    return pa.concat_tables([schema.empty_table(), *(_of_key(rows, key) for rows in batches)]).sort_by(_WRITTEN)


def _of_key(rows: pa.Table, key: Mapping[str, Sequence[Any]]) -> pa.Table:
    for name, values in key.items():
        rows = rows.filter(pc.is_in(rows[name], pa.array(values, rows.schema.field(name).type)))
    return rows


def may_have(bounds: tuple[Any, Any], values: Sequence[Any]) -> bool:
    """Return whether a file may have one of these values in a column, given the column's bounds in the file."""
    low, high = bounds
    if low is None or high is None or low.__class__ is not values[0].__class__:
        return True
    return any(low <= value <= high for value in values)


def read_file(folder: Folder, file: TableFile, schema: pa.Schema) -> pa.Table:
    """Return a file's rows in the table's schema. A column that the file lacks has the file's partition value, or null."""
    with folder.open_parquet(file.path) as parquet:
        stored = set(parquet.schema_arrow.names)
    rows = folder.read_table(file.path, [name for name in schema.names if name in stored])
    return _filled(rows, file, schema)


def file_batches(folder: Folder, file: TableFile, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield a file's rows as `read_file` does, batch by batch."""
    for batch in folder.read_batches(file.path, schema.names):
        yield _filled(pa.Table.from_batches([batch]), file, schema)


def _filled(rows: pa.Table, file: TableFile, schema: pa.Schema) -> pa.Table:
    stored, arrays = set(rows.column_names), []
    for field in schema:
        if field.name in stored:
            arrays.append(rows[field.name].cast(field.type))
        else:
            value = pa.scalar(file.partition.get(field.name)).cast(field.type)
            arrays.append(pa.chunked_array([pa.repeat(value, rows.num_rows)]))
    return pa.table(arrays, schema=schema)


def table_schema(table: DeltaTable) -> pa.Schema:
    """Return a table's Arrow schema. Types that rewindow does not write become text."""
    fields = json.loads(table.schema().to_json())["fields"]
    return arrow_schema([Column(field["name"], _column_type(field["type"])) for field in fields])


def content_hash(path: str, *, exclude: Sequence[str] = ("_run",)) -> str:
    """Return the content hash of a table: all rows in total order, in all columns except ``exclude`` (L2).

    The hash does not depend on files or on the order of rows and columns; -0.0 equals 0.0 and NaN equals NaN. Raises
    `StorageError` (74) if the table cannot be read.
    """
    return hash_rows(read_rows(path), exclude=exclude)


def _column_type(delta_type: Any) -> str:
    if isinstance(delta_type, str) and (delta_type in _TYPES or delta_type.startswith("decimal(")):
        return delta_type
    return {"integer": "long", "short": "long", "byte": "long", "float": "double"}.get(str(delta_type), "string")


def check_folders(path: str, files: Sequence[Any], partitions: Mapping[str, Sequence[Any]]) -> None:
    """Check that files are in the folders of the partitions that the Delta log states. Raises `StorageError` (74).

    The log has no checksum. This check finds a flipped bit in the partition values of the log. ``partitions`` maps each
    partition column to its values, one for each file.
    """
    for name, values in partitions.items():
        mark = f"{name}="
        for file, value in zip(files, values, strict=True):
            for part in file.split("/")[:-1]:
                if part.startswith(mark) and unquote(part.removeprefix(mark)) not in (str(value), _NO_PARTITION):
                    raise StorageError(
                        "delta-log-value-wrong",
                        "the Delta log of {path} is damaged: it says that {file} has {name} {value}. {fix}",
                        path=path,
                        file=file,
                        name=name,
                        value=value,
                        fix=way_out(path),
                    )


def _check_readable(path: str, table: DeltaTable) -> None:
    features, configuration = table.protocol().reader_features or (), table.metadata().configuration
    refused = ["column mapping"] if configuration.get("delta.columnMapping.mode", "none") != "none" else []
    if "deletionVectors" in features and pa.table(table.deletion_vectors()).num_rows:
        refused.append("deletion vectors")
    if refused:
        raise StorageError(
            "table-not-readable-by-file",
            "{path} cannot be read file by file, because it has the table feature {features}. Rewrite it "
            "(REORG TABLE ... APPLY (PURGE))",
            path=path,
            features=", ".join(refused),
        )


def first_rows(path: str, limit: int, *, last: bool = False, keys: Sequence[str] = ()) -> pa.Table:
    """Return the first ``limit`` rows of an output table in the order of timestamp, record and ``keys``.

    ``last``: return the last rows instead, in the same order. Raises `StorageError` (74) if the table cannot be read.
    """
    names = [*(column.name for column in OUTPUT_META if column.name != "_run"), *keys]
    reader = read_batches(path)
    order = [(name, "descending" if last else "ascending") for name in names if name in reader.schema.names]
    kept, waiting = reader.schema.empty_table(), []
    for batch in reader:
        waiting.append(batch)
        if sum(batch_waiting.num_rows for batch_waiting in waiting) >= _BATCH_ROWS:
            kept, waiting = _best(kept, waiting, order, limit), []
    kept = _best(kept, waiting, order, limit)
    return kept.take(pa.array(range(kept.num_rows - 1, -1, -1), pa.int64())) if last else kept


def _best(kept: pa.Table, more: Sequence[pa.RecordBatch], order: Sequence[tuple[str, str]], limit: int) -> pa.Table:
    rows = pa.concat_tables([kept, pa.Table.from_batches(more, kept.schema)])
    return rows.sort_by(list(order)).slice(0, limit)
