"""The journal of staged rows: the tasks' reports and the blocks of rows that they staged.

A block is the content of a staged file, Parquet with checksums and digest, as the value of a binary column: tasks may not
write files into governed tables. So a run stages the same rows under the same digests with either adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.control.plan.commit import JournalFile
from rewindow.control.plan.spec import canonical_json
from rewindow.control.plan.stored_format import load_stored, stored_json
from rewindow.engine.spark.errors import mapped
from rewindow.engine.spark.settings import for_packs
from rewindow.engine.worker.parquet_writer import DIGEST_BYTES
from rewindow.errors import StorageError
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.commit import add_once, create_table, last_version
from rewindow.tables.governed.names import TableName

ROW = "sub_topology long, partition long, kind string, path string, text string, data binary"
ROW_SCHEMA = pa.schema(
    [
        ("sub_topology", pa.int64()),
        ("partition", pa.int64()),
        ("kind", pa.string()),
        ("path", pa.string()),
        ("text", pa.string()),
        ("data", pa.binary()),
    ]
)
REPORT, BLOCK = "report", "block"
_KEYS = (Column("job", "string"), Column("attempt", "string"))
_OWN = (
    Column("sub_topology", "long"),
    Column("partition", "long"),
    Column("kind", "string"),
    Column("path", "string"),
    Column("text", "string"),
    Column("data", "binary"),
)


class SparkJournal:
    """The attempts of one job in a journal table of a catalog."""

    def __init__(self, spark: Callable[[], SparkSession], table: TableName, job: str) -> None:
        """Bind to a table and a job. Nothing is read or created."""
        self._spark_of, self.table, self.job = spark, table, job

    def prepare(self) -> None:
        """Create the table if it does not exist."""
        create_table(self._spark_of(), self.table, (*_OWN, *_KEYS), ("job", "attempt"))

    def append(self, attempt: str, part: int, rows: DataFrame) -> None:
        """Append what one part of an attempt made, in one commit. The caller reads the reports back to verify it.

        ``part`` is a sub-topology, or a number for what the driver made. Each part has its own transaction id: under a
        common one Delta would silently skip a lower version.
        """
        named = rows.withColumn("job", F.lit(self.job)).withColumn("attempt", F.lit(attempt))
        add_once(named, self.table, _part_id(attempt, part), 1)

    def reports(self, attempt: str, part: int | None = None) -> list[TaskReport]:
        """Return what an attempt's tasks reported, by sub-topology and partition."""
        reports = [TaskReport.from_json(report) for report in self.texts(attempt, part)]
        return sorted(reports, key=lambda report: (report.sub_topology, report.partition))

    def texts(self, attempt: str, part: int | None = None) -> list[Any]:
        """Return the decoded JSON that the tasks of an attempt reported, in arbitrary order."""
        rows = self._of([attempt]).where(F.col("kind") == REPORT)
        if part is not None:
            rows = rows.where(F.col("sub_topology") == part)
        with mapped():
            return [load_stored(row["text"], str(self.table)) for row in rows.select("text").collect()]

    def has(self, attempt: str, part: int) -> bool:
        """Return whether the append of a part landed, even without rows."""
        return last_version(self._spark_of(), self.table, _part_id(attempt, part)) > 0

    def blocks(self, attempts: Sequence[str]) -> DataFrame:
        """Return path and data of the blocks of some attempts."""
        return self._of(attempts).where(F.col("kind") == BLOCK).select("path", "data")

    def check(self, attempt: str, staged: Iterable[StagedFile]) -> None:
        """Read every block back. Raises `StorageError` (74) naming the first that is missing, duplicated or altered."""
        with mapped(), for_packs(self._spark_of(), has_files=True):
            found = self.blocks([attempt]).mapInArrow(_digests, "path string, digest string").collect()
        digests: dict[str, list[str]] = {}
        for row in found:
            digests.setdefault(row["path"], []).append(row["digest"])
        for file in staged:
            path = block_path(attempt, file.target, file.path)
            if digests.get(path) != [file.file_digest]:
                what = "differs from what was staged" if path in digests else "is gone"
                message = f"the journal {self.table}: {path} {what}. Nothing was committed: run again"
                raise StorageError(message)

    def drop(self, attempts: Sequence[str]) -> None:
        """Remove all rows of some attempts, in one commit."""
        names = ", ".join(f"'{attempt}'" for attempt in attempts)
        where = f"job = '{self.job}' AND attempt IN ({names})"
        with mapped():
            self._spark_of().sql(f"DELETE FROM {self.table.quoted} WHERE {where}")  # noqa: S608 - names are checked

    def _of(self, attempts: Sequence[str]) -> DataFrame:
        rows = self._spark_of().table(self.table.quoted)
        return rows.where((F.col("job") == self.job) & F.col("attempt").isin(list(attempts)))


def _part_id(attempt: str, part: int) -> str:
    return f"rewindow.journal/{attempt}/{part}"


def block_path(attempt: str, target: str, path: str) -> str:
    """Return the path of a staged file's block in the journal."""
    return f"{attempt}/{target}/{path}"


def summary(attempt: str, reports: Sequence[TaskReport]) -> JournalFile:
    """Return the bytes and the digest of an attempt's reports, for its COMMIT row."""
    texts = [canonical_json(report.as_json()).encode() for report in reports]
    digest = blake2b(b"\n".join(texts), digest_size=DIGEST_BYTES).hexdigest()
    return JournalFile(f"attempt={attempt}", sum(map(len, texts)), digest)


def journal_row(part: int, partition: int, kind: str, path: str, text: str, data: bytes | None) -> pa.RecordBatch:
    """Return one row of the journal as a record batch."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([value], field.type)
            for value, field in zip((part, partition, kind, path, text, data), ROW_SCHEMA, strict=True)
        ],
        schema=ROW_SCHEMA,
    )


def file_row(part: int, partition: int, attempt: str, file: StagedFile, root: str) -> pa.RecordBatch:
    """Return the row of a staged file below a local folder; delete the file."""
    path = Path(root, file.path)
    data = path.read_bytes()
    path.unlink()
    return journal_row(part, partition, BLOCK, block_path(attempt, file.target, file.path), stored_json({}), data)


def rows_of_block(data: bytes) -> pa.Table:
    """Return the rows of a block. Page checksums are verified."""
    return _block(data).read()


def batches_of_block(data: pa.Buffer, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a block batch by batch: decoded, a block can be much larger. Page checksums are verified."""
    for batch in _block(data).iter_batches():
        yield batch.select(list(names))


def _block(data: bytes | pa.Buffer) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)


def _digests(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        datas = (data.as_buffer() for data in batch.column("data"))
        digests = [blake2b(data, digest_size=DIGEST_BYTES).hexdigest() for data in datas]
        yield pa.RecordBatch.from_arrays([batch.column("path"), pa.array(digests)], names=["path", "digest"])
