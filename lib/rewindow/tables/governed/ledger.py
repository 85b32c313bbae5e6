"""The ledger through Spark: the same compare-and-set as `tables.delta.ledger`, decided by reading back (design, "The commit").

A writer proposes the next free number as the version of a transaction id that all writers of the name share. Delta accepts
only a version above every earlier one and rejects overlapping commits, so the row lands at that number or not at all. What
Spark returns or raises decides nothing.

Delta accepts any higher version, so only steps of one are a compare-and-set: rows that are appended together are one row of
the table (``ROWS``). Versions count appends; the numbers of the rows follow from all rows before them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.control.plan.branches import LedgerRow
from rewindow.engine.spark.errors import mapped
from rewindow.errors import InvariantError, did_not_land
from rewindow.streams.serde.schema import Column
from rewindow.tables.governed.commit import add_once, create_table
from rewindow.tables.governed.names import TableName
from rewindow.tables.shared.ledger import check_numbered, load_body, new_token, stored_body

_COLUMNS = (
    Column("name", "string"),
    Column("seq", "long"),
    Column("kind", "string"),
    Column("body", "string"),
    Column("recorded_at", "long"),
)
_SCHEMA = pa.schema([(c.name, pa.int64() if c.type == "long" else pa.string()) for c in _COLUMNS])
_PROPERTIES = {"delta.appendOnly": "true"}
ROWS = "ROWS"
"""The kind of a table row that holds several ledger rows."""
_ATTEMPTS = 6


class SparkLedger:
    """The rows of one job or feed in a catalog's ledger table. The first append creates the table."""

    def __init__(self, spark: Callable[[], SparkSession], table: TableName, name: str) -> None:
        """Bind to a table and a name. Nothing is read or created."""
        self._spark_of, self._table, self.name = spark, table, name
        self._exists = False

    def read(self) -> list[LedgerRow]:
        """Read this name's rows, in order. Raises `InvariantError` (70) if they are not numbered 1, 2, 3 ..."""
        return [row for rows in self.appends() for row in rows]

    def appends(self) -> list[list[LedgerRow]]:
        """Read the same rows, grouped by append."""
        return [rows for rows, _ in self._look()]

    def append(self, rows: Sequence[LedgerRow]) -> bool:
        """Append rows in one commit, numbered from the next free number. False if another writer took that number.

        Raises `InvariantError` (70) for numbers that leave a gap, `StorageError` (74) if the rows did not land or that
        cannot be determined.
        """
        check_numbered(self.name, rows)
        first = rows[0].seq
        kind, body = _packed(rows)
        text = stored_body(body, new_token())
        failure: Exception | None = None
        seen = self._look()
        for attempt in range(_ATTEMPTS):
            count = sum(len(some) for some, _ in seen)
            if count >= first:
                break
            if count != first - 1:
                message = f"ledger {self.name} has {count} rows: {first} is not the next number"
                raise InvariantError(message)
            try:
                self._write(len(seen) + 1, kind, text, rows[0].recorded_at)
            except Exception as error:  # noqa: BLE001 - the commit may have landed: the rows decide
                failure = error
                time.sleep(0.01 * 2**attempt)
            seen = self._look()
        if sum(len(some) for some, _ in seen) < first:
            raise did_not_land(f"ledger {self.name}: row {first}", _ATTEMPTS, failure) from failure
        return any(written == text for _, written in seen)

    def _write(self, number: int, kind: str, text: str, recorded_at: int | None) -> None:
        if not self._exists:
            create_table(self._spark, self._table, _COLUMNS, ("name",), _PROPERTIES)
            self._exists = True
        columns = [[self.name], [number], [kind], [text], [recorded_at]]
        frame = self._spark.createDataFrame(pa.table(columns, schema=_SCHEMA))
        add_once(frame, self._table, f"rewindow.ledger/{self.name}", number)

    def _look(self) -> list[tuple[list[LedgerRow], str]]:
        with mapped():
            if not self._exists and not self._spark.catalog.tableExists(self._table.quoted):
                return []
            table = self._spark.table(self._table.quoted)
            found = table.where(F.col("name") == self.name).collect()
            for row in [] if found else table.select("body").limit(1).collect():
                load_body(row["body"], str(self._table))  # fails if the table has rows of another format
        rows = sorted(found, key=lambda row: int(row["seq"]))
        numbers = [row["seq"] for row in rows]
        if numbers != list(range(1, len(numbers) + 1)):
            message = (
                f"the ledger of {self.name} in {self._table} is damaged: its last rows are numbered {numbers[-5:]}. "
                "Restore the table from a copy before you run or land"
            )
            raise InvariantError(message)
        appends: list[tuple[list[LedgerRow], str]] = []
        before = 0
        for row in rows:
            stored, token = load_body(row["body"], str(self._table))
            bodies = _unpacked(row["kind"], stored)
            made = [
                LedgerRow(seq, kind, body, row["recorded_at"], token)
                for seq, (kind, body) in enumerate(bodies, before + 1)
            ]
            appends.append((made, row["body"]))
            before += len(made)
        return appends

    @property
    def _spark(self) -> SparkSession:
        return self._spark_of()


def _packed(rows: Sequence[LedgerRow]) -> tuple[str, Mapping[str, Any]]:
    if len(rows) == 1:
        return rows[0].kind, rows[0].body
    return ROWS, {"rows": [[row.kind, row.body] for row in rows]}


def _unpacked(kind: str, body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(one, inner) for one, inner in body["rows"]] if kind == ROWS else [(kind, body)]
