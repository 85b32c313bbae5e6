"""The ledger through Spark: the same compare-and-set as `tables.delta.ledger` (design, "The commit").

A writer proposes the next free number as the version of a transaction id that all writers of the name share. Delta accepts
only a version above every earlier one and rejects overlapping commits, so the row lands at that number or not at all. What
Spark returns or raises decides nothing: Delta notes the commit (`noted_commit`), or else the history shows whose token has the
number, or else the rows do.

Delta accepts any higher version, so only steps of one are a compare-and-set: rows that are appended together are one row of
the table (``ROWS``). Versions count appends; the numbers of the rows follow from all rows before them.

During a command (`SparkLedger.keeps`), the rows that were read or appended are kept. A decision on rows that are no longer
all rows does no harm: its append fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.control.plan.branches import LedgerRow
from rewindow.errors import CheckpointError, InvariantError, NotNowError, not_committed
from rewindow.tables.governed.history import last_version
from rewindow.tables.governed.own_table import OwnTable, is_text, rows_of
from rewindow.tables.governed.seen import Seen
from rewindow.tables.shared.ledger import check_numbered, load_body, new_token, stored_body

ROWS = "ROWS"
"""The kind of a table row that holds several ledger rows, or what a run saw of its tables."""
_ATTEMPTS = 6


class _Append(NamedTuple):
    """The rows of an append, the stored text, and what a run saw of its tables before it."""

    rows: list[LedgerRow]
    text: str
    seen: list[Seen]


class SparkLedger:
    """The rows of one job or feed in a catalog's table. The first append creates the table."""

    def __init__(self, table: OwnTable, name: str, look: Callable[[str], Iterable[Row]] | None = None) -> None:
        """Bind to a table and a name. ``look`` returns the stored rows of a name. Nothing is read or created."""
        self._table, self.name = table, name
        self._stored = look or self._read_rows
        self._known: list[_Append] | None = None
        self._held: list[LedgerRow] = []
        self._keeps = False

    def keep(self, *, keeps: bool) -> None:
        """Begin or end a command: forget what was read and held; keep from now on what is read if ``keeps``."""
        self._known, self._held, self._keeps = None, [], keeps

    def read(self) -> list[LedgerRow]:
        """Return this name's rows, in order, those held included.

        Raises `InvariantError` (70) if they are not numbered 1, 2, 3 ...
        """
        return [*(row for rows in self.appends() for row in rows), *self._held]

    def read_afresh(self) -> list[LedgerRow]:
        """Return the rows from a fresh look, also during a command."""
        return [row for append in self._look(afresh=True) for row in append.rows]

    def is_overtaken(self) -> bool:
        """Return whether other processes have appended rows since the current command read this name's rows."""
        known = self._known
        return self._keeps and known is not None and _count(self._look(afresh=True)) > _count(known)

    def appends(self) -> list[list[LedgerRow]]:
        """Return the rows of the table, grouped by append."""
        return [append.rows for append in self._look()]

    def seen(self) -> list[Seen]:
        """Return what runs saw of each table, the last run of those that saw it."""
        return list({(one.table, one.app): one for append in self._look() for one in append.seen}.values())

    def hold(self, rows: Sequence[LedgerRow]) -> bool:
        """Hold rows until the next append or `flush`, under the token of that. False if another writer took their number."""
        check_numbered(self.name, rows)
        if _count(self._look()) != rows[0].seq - 1:
            self._look(afresh=True)
            return False
        token = new_token()
        self._held = [replace(row, token=token) for row in rows]
        return True

    def flush(self) -> None:
        """Append the rows that are held. Raises `NotNowError` (75) if another process was faster."""
        if self._held:
            self.append([])

    def append(self, rows: Sequence[LedgerRow], more: pa.Table | None = None, seen: Sequence[Seen] = ()) -> bool:
        """Append rows, after those held and with ``more`` rows of the journal, in one commit that records what was ``seen``.

        False if another writer took the number. Raises `NotNowError` (75) for that if rows were held: what was made since
        names their numbers. Raises `InvariantError` (70) for numbers that leave a gap, `StorageError` (74) if the rows did
        not land or that cannot be determined, `CheckpointError` (76) if rows were deleted.
        """
        was_held = bool(self._held)
        token = self._held[0].token if self._held else new_token()
        rows, self._held = [*self._held, *rows], []
        check_numbered(self.name, rows)
        first = rows[0].seq
        kind, body = _packed(rows, seen)
        text = stored_body(body, token)
        failure: Exception | None = None
        known = self._look()
        if _count(known) != first - 1:
            known = self._look(afresh=True)
        for attempt in range(_ATTEMPTS):
            if _count(known) >= first:
                break
            if _count(known) != first - 1:
                message = f"ledger {self.name} has {_count(known)} rows: {first} is not the next number"
                raise InvariantError(message)
            number = len(known) + 1
            try:
                values = (self.name, number, kind, text, rows[0].recorded_at)
                columns = ("name", "seq", "kind", "body", "recorded_at")
                row = rows_of({name: [value] for name, value in zip(columns, values, strict=True)}, 1)
                every = row if more is None else pa.concat_tables([row, more])
                has_landed = self._table.append(every, self._app_id, number, token)
            except Exception as error:  # noqa: BLE001 - the commit may have landed: the history or the rows decide
                failure, has_landed = error, False
                time.sleep(0.01 * 2**attempt)
            if has_landed or (self._table.exists() and self._table.token_of(self._app_id, number) == token):
                self._known = [*known, _loaded(text, kind, rows[0].recorded_at, first, str(self._table.name))]
                return True
            known = self._look(afresh=True)
        if _count(known) < first:
            if last_version(self._table.spark_of(), self._table.name, self._app_id) > len(known):
                message = (
                    f"rows of the ledger of {self.name} were deleted from {self._table.name}: RESTORE the version of that table "
                    "before they were"
                )
                raise CheckpointError(message)
            raise not_committed(f"row {first} of the ledger {self.name}", _ATTEMPTS, failure) from failure
        has_landed = any(append.text == text for append in known)
        if was_held and not has_landed:
            message = f"{self.name}: another process decided first, so this one made nothing. Run the command again"
            raise NotNowError(message)
        return has_landed

    @property
    def _app_id(self) -> str:
        return f"rewindow.ledger/{self.name}"

    def _look(self, *, afresh: bool = False) -> list[_Append]:
        if self._known is None or afresh or not self._keeps:
            self._known = self._parsed(self._read_rows(self.name) if afresh else self._stored(self.name))
        return self._known

    def _read_rows(self, name: str) -> list[Row]:
        return self._table.texts(lambda: (F.col("name") == name) & F.col("seq").isNotNull() & is_text())

    def _parsed(self, found: Iterable[Row]) -> list[_Append]:
        rows = sorted((row for row in found if row["seq"] is not None), key=lambda row: int(row["seq"]))
        numbers = [row["seq"] for row in rows]
        if numbers != list(range(1, len(numbers) + 1)):
            message = (
                f"the ledger of {self.name} in {self._table.name} is damaged: its last rows are numbered {numbers[-5:]}. "
                "Restore the table from a copy before you run or land"
            )
            raise InvariantError(message)
        appends: list[_Append] = []
        before = 0
        for row in rows:
            made = _loaded(row["body"], row["kind"], row["recorded_at"], before + 1, str(self._table.name))
            appends.append(made)
            before += len(made.rows)
        return appends


def _count(appends: list[_Append]) -> int:
    return sum(len(append.rows) for append in appends)


def _loaded(text: str, kind: str, recorded_at: int, first: int, table: str) -> _Append:
    """Return a stored row, with its ledger rows numbered from ``first``."""
    stored, token = load_body(text, table)
    bodies = stored["rows"] if kind == ROWS else [(kind, stored, recorded_at)]
    rows = [LedgerRow(seq, one, body, at, token) for seq, (one, body, at) in enumerate(bodies, first)]
    return _Append(rows, text, [Seen(*one) for one in stored.get("seen", ())] if kind == ROWS else [])


def _packed(rows: Sequence[LedgerRow], seen: Sequence[Seen]) -> tuple[str, Mapping[str, Any]]:
    if len(rows) == 1 and not seen:
        return rows[0].kind, rows[0].body
    body: dict[str, Any] = {"rows": [[row.kind, row.body, row.recorded_at] for row in rows]}
    return ROWS, {**body, "seen": seen} if seen else body
