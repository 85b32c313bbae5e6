"""The ledger through Spark: the same compare-and-set as `delta.ledger`, decided by reading back (DESIGN.md, "The commit").

A writer proposes the next number that it has seen to be free as the version of a transaction id that all writers of the
name share. Delta lands it only above every earlier one, and refuses what overlaps: so it lands at that number or not at
all. What Spark returns or raises says nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.catalog.names import TableName
from rewindow.catalog.sql import add_once, make_table
from rewindow.core.schema import Column
from rewindow.errors import InvariantError, StorageError
from rewindow.plan.lineage import LedgerRow
from rewindow.plan.spec import canonical_json
from rewindow.spark.errors import mapped

_COLUMNS = (
    Column("name", "string"),
    Column("seq", "long"),
    Column("kind", "string"),
    Column("body", "string"),
    Column("recorded_at", "long"),
)
_SCHEMA = pa.schema([(c.name, pa.int64() if c.type == "long" else pa.string()) for c in _COLUMNS])
_PROPERTIES = {"delta.appendOnly": "true"}
_WRITER = "_writer"
_ATTEMPTS = 6


class SparkLedger:
    """The rows of one name in a ledger table of a catalog, which is made when first needed."""

    def __init__(self, spark: Callable[[], SparkSession], table: TableName, name: str) -> None:
        """Bind to a table and a name. Nothing is read or made."""
        self._spark_of, self._table, self.name = spark, table, name
        self._is_made = False

    def read(self) -> list[LedgerRow]:
        """Return this name's rows, in order. Raises `InvariantError` (70) if they are not numbered 1, 2, 3 ... ."""
        return [row for row, _ in self._look()]

    def append(self, rows: Sequence[LedgerRow]) -> bool:
        """Append one row, numbered by the next free number. True: it is there. False: another's; judge anew.

        Raises `InvariantError` (70) for a number that leaves a gap or for several rows (Delta lands any higher version:
        only steps of one are a compare-and-set), `StorageError` (74) if it did not land or nobody can tell.
        """
        if len(rows) != 1 or rows[0].seq < 1:
            message = f"ledger {self.name}: through Spark rows are appended one by one, got {[row.seq for row in rows]}"
            raise InvariantError(message)
        (row,) = rows
        text = canonical_json({**row.body, _WRITER: uuid4().hex})
        failure: Exception | None = None
        seen = self._look()
        for attempt in range(_ATTEMPTS):
            if len(seen) >= row.seq:
                break
            if len(seen) != row.seq - 1:
                message = f"ledger {self.name} has {len(seen)} rows: {row.seq} is not the next number"
                raise InvariantError(message)
            try:
                self._write(row, text)
            except Exception as error:  # noqa: BLE001 - it may have landed all the same: the rows decide
                failure = error
                time.sleep(0.01 * 2**attempt)
            seen = self._look()
        if len(seen) < row.seq:
            message = f"ledger {self.name}: row {row.seq} did not land in {_ATTEMPTS} attempts ({failure}); run again"
            raise StorageError(message) from failure
        return seen[row.seq - 1][1] == text

    def _write(self, row: LedgerRow, text: str) -> None:
        if not self._is_made:
            make_table(self._spark, self._table, _COLUMNS, ("name",), _PROPERTIES)
            self._is_made = True
        cells = [[self.name], [row.seq], [row.kind], [text], [row.recorded_at]]
        frame = self._spark.createDataFrame(pa.table(cells, schema=_SCHEMA))
        add_once(frame, self._table, f"rewindow.ledger/{self.name}", row.seq)

    def _look(self) -> list[tuple[LedgerRow, str]]:
        with mapped():
            if not self._is_made and not self._spark.catalog.tableExists(self._table.quoted):
                return []
            found = self._spark.table(self._table.quoted).where(F.col("name") == self.name).collect()
        rows = sorted(found, key=lambda row: int(row["seq"]))
        numbers = [row["seq"] for row in rows]
        if numbers != list(range(1, len(numbers) + 1)):
            message = (
                f"the ledger of {self.name} in {self._table} is damaged: its rows are numbered {numbers[-5:]} at the end. "
                "Do not run or land; restore the table from a copy"
            )
            raise InvariantError(message)
        return [
            (LedgerRow(row["seq"], row["kind"], _load(row["body"]), row["recorded_at"]), row["body"]) for row in rows
        ]

    @property
    def _spark(self) -> SparkSession:
        return self._spark_of()


def _load(text: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(text)
    body.pop(_WRITER, None)
    return body
