"""The journal of staged rows: the tasks' reports and the blocks of rows that they staged.

A block is the content of a staged file (Parquet with checksums and digest). So a run stages the same rows with the same
digests in both adapters. Blocks are values of a binary column, because tasks may not write files into governed tables.

Rows that this process made are held in memory, and appended in the commit of the ledger row that makes them valid. Spark's
workers append the rows that they made themselves. In both cases, an attempt without its ledger row has no effect.

`gc` lists and deletes the rows by attempt and part. The part of a block is the first element of its target: ``output``,
``changelog``, ``internal``, ``log``, ``metrics``, ``quarantine``, ``expectations``. The part of any other row is its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.control.garbage_collection import Garbage
from rewindow.control.plan.planned_tasks import METRICS_TARGET
from rewindow.control.plan.spec import JournalFile, canonical_json
from rewindow.control.plan.stored_rows import load_stored, stored_json
from rewindow.engine.spark.spark_calls import for_packs, mapped
from rewindow.engine.worker.parquet_writer import DIGEST_BYTES
from rewindow.engine.worker.staging import StagingTarget, stage_rows
from rewindow.errors import NotNowError, RewindowError, StorageError
from rewindow.storage.scratch import scratch_folder
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.commit import add_once
from rewindow.tables.governed.own_table import BLOCK, METRIC, REPORT, OwnTable, rows_of
from rewindow.tables.governed.table_history import last_version
from rewindow.tables.shared.ledger import now_ms

ROW = "sub_topology long, partition long, kind string, path string, text string, data binary"
_ROW_SCHEMA = pa.schema(
    [
        ("sub_topology", pa.int64()),
        ("partition", pa.int64()),
        ("kind", pa.string()),
        ("path", pa.string()),
        ("text", pa.string()),
        ("data", pa.binary()),
    ]
)
ROOT = "block:"
"""The prefix of the paths of blocks. The roots of a run's targets begin with it."""


def block_path(attempt: str, target: str, path: str) -> str:
    """Return the path of a staged file's block in the journal."""
    return f"{attempt}/{target}/{path}"


def _digest_of(data: bytes | pa.Buffer) -> str:
    """Return the digest of a block, as in `StagedFile.file_digest`."""
    return blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


def journal_row(part: int, partition: int, kind: str, path: str, text: str, data: bytes | None) -> pa.RecordBatch:
    """Return one row of the journal as a record batch."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([value], field.type)
            for value, field in zip((part, partition, kind, path, text, data), _ROW_SCHEMA, strict=True)
        ],
        schema=_ROW_SCHEMA,
    )


def file_row(part: int, partition: int, attempt: str, file: StagedFile, root: str) -> pa.RecordBatch:
    """Return the journal row of a staged file, and delete the file. ``root``: the folder to which the file's path is relative."""
    path = Path(root, file.path)
    data = path.read_bytes()
    path.unlink()
    return journal_row(part, partition, BLOCK, block_path(attempt, file.target, file.path), stored_json({}), data)


def rows_of_block(data: bytes) -> pa.Table:
    """Return the rows of a block. Page checksums are verified."""
    return _block(data).read()


def batches_of_block(data: bytes | pa.Buffer, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a block in batches, because a block can be much larger when decoded. Page checksums are verified."""
    for batch in _block(data).iter_batches():
        yield batch.select(list(names))


def _block(data: bytes | pa.Buffer) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)


_MOST_BYTES = 32 << 20
"""If the held rows of an attempt have more bytes than this, they are appended before the ledger row, because the size of a
statement is limited."""
_KEPT_BYTES = 64 << 20
"""At most this many bytes of blocks stay in memory after they were appended, so that they can be published from memory."""
_DRIVER = 1_000_000
"""The number that the journal uses as sub-topology for rows that the driver stages."""
_PART = f"CASE kind WHEN '{BLOCK}' THEN split(path, '/')[1] ELSE kind END"
_AT_ONCE = 500
"""The most attempts that one statement names."""
_NEVER = 1 << 62
"""The time that is assumed for rows without a time. It makes sure that such rows are never old."""
_Item = TypeVar("_Item")


class SparkJournal:
    """The attempts of one job or feed in the journal of a catalog."""

    def __init__(
        self, table: OwnTable, name: str, before_append: Callable[[], None], is_overtaken: Callable[[], bool]
    ) -> None:
        """``before_append`` appends the attempt's plan to the ledger. It is called before workers append rows.

        ``is_overtaken`` returns whether other processes have appended to the ledger since this command read the ledger.
        """
        self._table, self.name = table, name
        self._before_append, self._is_overtaken = before_append, is_overtaken
        self._held: dict[str, list[pa.RecordBatch]] = {}
        self._texts: dict[str, list[tuple[int, str]]] = {}
        self._digests: dict[str, list[str]] = {}
        self._blocks: dict[str, bytes] = {}
        self._parts = 0
        self._appended: set[str] = set()

    def forget(self) -> None:
        """Drop all rows from memory that were read or held."""
        for cache in (self._held, self._texts, self._digests, self._blocks):
            cache.clear()

    def know(self, texts: Iterable[tuple[str, int, str]]) -> None:
        """Remember reports that were read elsewhere. ``texts``: triples of attempt, sub-topology and text."""
        for attempt, part, text in texts:
            self._texts.setdefault(attempt, []).append((part, text))

    def prepare(self) -> None:
        """Create the table if it does not exist."""
        self._table.prepare()

    def append(self, attempt: str, part: int, rows: DataFrame) -> None:
        """Append the rows that one part (sub-topology) of an attempt made, in one commit. The caller must read them back."""
        self.make_durable(attempt)
        self._appended.add(attempt)
        named = rows.withColumn("name", F.lit(self.name)).withColumn("attempt", F.lit(attempt))
        self._table.prepare()
        # Each part has its own application id. Under a common id, Delta would skip the part with the lower version without an
        # error.
        add_once(_completed(named), self._table.name, _part_id(attempt, part), 1)

    def make_durable(self, attempt: str) -> None:
        """Append the attempt's plan and its held rows. Called before workers read or append rows."""
        self._before_append()
        self.flush(attempt)

    def hold(self, attempt: str, batches: Iterable[pa.RecordBatch]) -> None:
        """Hold rows that this process made, in batches of one row (`_ROW_SCHEMA`)."""
        for batch in batches:
            self._held.setdefault(attempt, []).append(batch)
            (row,) = batch.to_pylist()
            if row["kind"] == REPORT:
                self._texts.setdefault(attempt, []).append((row["sub_topology"], row["text"]))
            elif row["kind"] == BLOCK:
                self._blocks[row["path"]] = row["data"]
                self._digests[row["path"]] = [_digest_of(row["data"])]

    def held(self, attempt: str) -> pa.Table | None:
        """Return the held rows of an attempt as rows of the table; None if there are none, or if they had to be appended."""
        batches = self._held.get(attempt)
        if not batches:
            return None
        if sum(batch.nbytes for batch in batches) > _MOST_BYTES:
            # The rows were too large for one commit.
            self.make_durable(attempt)
            return None
        return self._as_rows(attempt, batches)

    def flush(self, attempt: str) -> None:
        """Append the held rows of an attempt, so that workers can read them. Reads the rows back."""
        held = self._held.pop(attempt, [])
        self._appended.add(attempt)
        parts = {batch["sub_topology"][0].as_py() for batch in held}
        while held:
            batches, size = [held[0]], held.pop(0).nbytes
            while held and (size := size + held[0].nbytes) <= _MOST_BYTES:
                batches.append(held.pop(0))
            self._parts += 1
            with mapped():
                self._table.append(self._as_rows(attempt, batches), _part_id(attempt, f"held-{self._parts}"), 1)
        for part in parts:
            self.read_back(attempt, part)

    def landed(self, attempt: str) -> None:
        """Stop holding the rows of an attempt after they were appended with a ledger row.

        Blocks stay in memory, unless all blocks together have more than `_KEPT_BYTES`.
        """
        self._held.pop(attempt, None)
        if sum(map(len, self._blocks.values())) > _KEPT_BYTES:
            self._blocks.clear()

    def reports(self, attempt: str, part: int | None = None) -> list[TaskReport]:
        """Return the reports of an attempt's tasks, sorted by sub-topology and partition.

        ``part``: return only the reports of this sub-topology.
        """
        reports = [TaskReport.from_json(report) for report in self.texts(attempt, part)]
        return sorted(reports, key=lambda report: (report.sub_topology, report.partition))

    def reports_afresh(self, attempt: str) -> list[TaskReport]:
        """Return the reports of an attempt's tasks, read again with a new query."""
        self._texts.pop(attempt, None)
        return self.reports(attempt)

    def texts(self, attempt: str, part: int | None = None) -> list[Any]:
        """Return the reports of an attempt's tasks as decoded JSON, in arbitrary order.

        ``part``: return only the reports of this sub-topology.
        """
        if attempt not in self._texts:
            self._read_reports()
        reports = self._texts.get(attempt, [])
        return [
            load_stored(text, str(self._table.name)) for part_of_text, text in reports if part in (None, part_of_text)
        ]

    def _read_reports(self) -> None:
        """With one query, read the reports of all attempts whose reports are not in memory."""
        rows = self._table.texts(lambda: (F.col("name") == self.name) & (F.col("kind") == REPORT))
        new = [row for row in rows if row["attempt"] not in self._texts]
        self.know((row["attempt"], row["sub_topology"], row["body"]) for row in new)

    def read_back(self, attempt: str, part: int | None = None) -> None:
        """Read the reports, and the digests of the blocks, that an attempt (or one part of it) has appended."""
        self._texts[attempt] = (
            [] if part is None else [entry for entry in self._texts.get(attempt, []) if entry[0] != part]
        )
        if not self._table.exists():
            return
        rows = self._of([attempt]).where(F.col("kind") != METRIC)
        digested = self._digested(rows if part is None else rows.where(F.col("sub_topology") == part))
        self._texts[attempt] += [(row["part"], row["text"]) for row in digested if row["kind"] == REPORT]
        blocks = [row for row in digested if row["kind"] == BLOCK]
        self._digests |= {row["path"]: [] for row in blocks}
        for row in blocks:
            self._digests[row["path"]].append(row["text"])

    def all_digests(self) -> Mapping[str, Sequence[str]]:
        """Return the digests of all blocks, by path. A block that is doubled has several digests. Reads every block."""
        digests: dict[str, list[str]] = {}
        if self._table.exists():
            for row in self._digested(
                self._table.frame().where((F.col("name") == self.name) & (F.col("kind") == BLOCK))
            ):
                digests.setdefault(row["path"], []).append(row["text"])
        return digests

    def _digested(self, rows: DataFrame) -> list[Row]:
        columns = rows.select("kind", "sub_topology", "path", "body", "data")
        with mapped(), for_packs(self._table.spark_of(), has_files=True):
            return columns.mapInArrow(_digests, "kind string, part long, path string, text string").collect()

    def has(self, attempt: str, part: int) -> bool:
        """Return whether the append of a part landed, even if it had no rows."""
        return (
            self._table.exists() and last_version(self._table.spark_of(), self._table.name, _part_id(attempt, part)) > 0
        )

    def blocks(self, attempts: Sequence[str]) -> DataFrame:
        """Return path and data of those blocks of attempts that are in the table. Held blocks are left out."""
        return self._of(attempts).where(F.col("kind") == BLOCK).select("path", "data")

    def block_data(self, paths: Iterable[str]) -> Mapping[str, bytes]:
        """Return, by path, the bytes of blocks, from memory or with one query.

        Raises `StorageError` (74) if a block is gone or doubled, but `NotNowError` (75) if a concurrent `gc` may have deleted it.
        """
        wanted = set(paths)
        data = {path: self._blocks[path] for path in wanted if path in self._blocks}
        lacking = sorted(wanted - data.keys())
        if lacking:
            attempts = sorted({path.partition("/")[0] for path in lacking})
            with mapped():
                rows = self._table.in_command().where((F.col("kind") == BLOCK) & F.col("attempt").isin(attempts))
                blocks = rows.where(F.col("path").isin(lacking)).select("path", "data").collect()
            if sorted(row["path"] for row in blocks) != lacking:
                raise self._lost_blocks()
            data |= {row["path"]: bytes(row["data"]) for row in blocks}
        return data

    def in_memory(self, paths: Iterable[str]) -> bool:
        """Return whether all these blocks are in memory."""
        return all(path in self._blocks for path in paths)

    def require(self, paths: Iterable[str]) -> None:
        """Check that each of these blocks is in memory or in the table. Raises as `block_data` does."""
        lacking = {path for path in paths if path not in self._blocks}
        attempts = sorted({path.partition("/")[0] for path in lacking})
        with mapped():
            present = self.blocks(attempts).where(F.col("path").isin(sorted(lacking))).select("path").collect()
        if sorted(row["path"] for row in present) != sorted(lacking):
            raise self._lost_blocks()

    def check(self, attempt: str, staged: Iterable[StagedFile]) -> None:
        """Compare the digests of blocks (read back, or held in memory) with the digests of the staged files.

        Raises `StorageError` (74), which names the first block that is missing, duplicated or altered.
        """
        for file in staged:
            path = block_path(attempt, file.target, file.path)
            if self._digests.get(path) != [file.file_digest]:
                fault = "differs from what was staged" if path in self._digests else "is gone"
                raise StorageError(
                    "journal-altered",
                    "the journal {table}: {path} {fault}. Nothing was committed: run again",
                    table=self._table.name,
                    path=path,
                    fault=fault,
                )

    def drop(self, attempts: Sequence[str]) -> None:
        """Remove all rows of these attempts. If the table may have some of them, this takes one commit."""
        durable = [attempt for attempt in attempts if attempt in self._appended or attempt not in self._held]
        for attempt in attempts:
            self._held.pop(attempt, None)
            self._texts.pop(attempt, None)
            self._blocks = {path: data for path, data in self._blocks.items() if not path.startswith(f"{attempt}/")}
        if durable and self._table.exists():
            names = ", ".join(f"'{attempt}'" for attempt in durable)
            self._table.delete(f"name = '{self.name}' AND seq IS NULL AND attempt IN ({names})")

    def _lost_blocks(self) -> RewindowError:
        if self._is_overtaken():
            return NotNowError(
                "journal-cleaned-by-other",
                "{name}: another process decided first, and `gc` deleted what it replaced. Run the command again",
                name=self.name,
            )
        is_feed = self.name.startswith("feed:")
        fix = "restore it from a copy" if is_feed else f"repeat their runs: `rewindow republish {self.name}`"
        return StorageError(
            "journal-blocks-lost",
            "blocks are gone from the journal {table}, or doubled: {fix}",
            table=self._table.name,
            fix=fix,
        )

    def _of(self, attempts: Sequence[str]) -> DataFrame:
        rows = self._table.frame()
        return rows.where((F.col("name") == self.name) & F.col("attempt").isin(list(attempts)))

    def _as_rows(self, attempt: str, batches: Sequence[pa.RecordBatch]) -> pa.Table:
        rows = pa.Table.from_batches(batches, _ROW_SCHEMA)
        columns = {"body" if name == "text" else name: rows[name].combine_chunks() for name in rows.column_names}
        constant = {"name": self.name, "attempt": attempt, "recorded_at": now_ms()}
        repeated = {name: [value] * rows.num_rows for name, value in constant.items()}
        return rows_of({**columns, **repeated}, rows.num_rows)


def _completed(rows: DataFrame) -> DataFrame:
    more = {name: F.lit(value).cast("long") for name, value in (("seq", None), ("recorded_at", now_ms()))}
    return rows.withColumnRenamed("text", "body").withColumns(more)


def _part_id(attempt: str, part: int | str) -> str:
    return f"rewindow.journal/{attempt}/{part}"


def summary(attempt: str, reports: Sequence[TaskReport]) -> JournalFile:
    """Return the bytes and the digest of an attempt's reports, for its COMMIT row."""
    texts = [canonical_json(report.as_json()).encode() for report in reports]
    digest = blake2b(b"\n".join(texts), digest_size=DIGEST_BYTES).hexdigest()
    return JournalFile(f"attempt={attempt}", sum(map(len, texts)), digest)


def _digests(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        kinds, datas = batch.column("kind").to_pylist(), batch.column("data")
        texts = [
            _digest_of(data.as_buffer()) if kind == BLOCK else text
            for kind, text, data in zip(kinds, batch.column("body").to_pylist(), datas, strict=True)
        ]
        columns = [
            batch.column("kind"),
            batch.column("sub_topology"),
            batch.column("path"),
            pa.array(texts, pa.string()),
        ]
        yield pa.RecordBatch.from_arrays(columns, names=["kind", "part", "path", "text"])


def hold_rows(
    journal: SparkJournal, target: str, attempt: str, columns: Sequence[Column], rows: Iterable[tuple[Any, ...]]
) -> list[StagedFile]:
    """Let the journal hold a few rows as a block. Metrics are also held row by row, for the view of the metrics."""
    listed = list(rows)
    with scratch_folder() as folder:
        files = stage_rows(StagingTarget(target, folder, attempt=attempt, partition=0), columns, listed)
        journal.hold(attempt, [file_row(_DRIVER, 0, attempt, file, folder) for file in files])
    if target == METRICS_TARGET:
        names = [column.name for column in columns]
        texts = [stored_json(dict(zip(names, row, strict=True))) for row in listed]
        journal.hold(attempt, [journal_row(_DRIVER, 0, METRIC, "", text, None) for text in texts])
    return files


class Listed(NamedTuple):
    """The rows of one part of an attempt. ``recorded_at``: when the last of them was appended (epoch ms)."""

    attempt: str
    part: str
    recorded_at: int


class JournalRows:
    """The journal rows of one job or feed, without the rows of its ledger."""

    def __init__(self, table: OwnTable, name: str) -> None:
        """``name``: the name of a job, or the `feed_name` of a feed. Nothing is read."""
        self._table, self._name = table, name

    def listed(self) -> list[Listed]:
        """Return the attempts and parts that have rows. No block is read."""
        if not self._table.exists():
            return []
        grouped = self._rows().groupBy("attempt", F.expr(_PART).alias("part"))
        with mapped():
            parts = grouped.agg(F.coalesce(F.max("recorded_at"), F.lit(_NEVER)).alias("last")).collect()
        return sorted(Listed(row["attempt"], row["part"], row["last"]) for row in parts)

    def garbage(self, garbage: Sequence[tuple[Listed, str]]) -> Iterator[Garbage]:
        """Yield garbage with its size. ``garbage``: pairs (rows to delete, reason).

        The path of garbage is an attempt and a part.
        """
        for some in _in_parts(garbage):
            attempts = sorted({item.attempt for item, _ in some})
            rows = self._rows().where(F.col("attempt").isin(attempts))
            sizes = rows.groupBy("attempt", F.expr(_PART).alias("part")).agg(F.sum(F.length("data")).alias("size"))
            with mapped():
                size_of = {(row["attempt"], row["part"]): row["size"] or 0 for row in sizes.collect()}
            for item, why in some:
                path = f"{item.attempt}/{item.part}"
                yield Garbage(str(self._table.name), path, size_of.get((item.attempt, item.part), 0), why)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete the rows that ``paths`` (values of `Garbage.path`) name, a few hundred attempts per commit, if still there."""
        for some in _in_parts(sorted(paths)):
            by_part: dict[str, list[str]] = {}
            for path in some:
                attempt, _, part = path.rpartition("/")
                by_part.setdefault(part, []).append(f"'{attempt}'")
            named = [f"({_PART} = '{part}' AND attempt IN ({', '.join(of)}))" for part, of in sorted(by_part.items())]
            self._table.delete(f"name = '{self._name}' AND seq IS NULL AND ({' OR '.join(named)})")

    def merge_files(self) -> None:
        """Merge the small files with rows of the job or feed."""
        if self._table.exists():
            self._table.merge_files(self._name)

    def _rows(self) -> DataFrame:
        return self._table.frame().where((F.col("name") == self._name) & F.col("seq").isNull())


def _in_parts(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]


def is_report(part: str) -> bool:
    """Return whether a part consists of reports or metrics. These are kept as long as their attempt may be committed."""
    return part in (REPORT, METRIC)
