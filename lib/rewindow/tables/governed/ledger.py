"""The ledger through Spark: the same compare-and-set as `tables.delta.ledger` (design, "The commit").

A writer proposes the next free number as the version of a transaction id that all writers of the name share. Delta accepts
only a version above every earlier one and rejects overlapping commits, so the row lands at that number or not at all. What
Spark returns or raises decides nothing: Delta notes the commit (`commit_noted`), or else the history shows whose token has the
number, or else the rows do.

Delta accepts any higher version, so only steps of one are a compare-and-set: rows that are appended together are one row of
the table (``ROWS``). Versions count appends; the numbers of the rows follow from all rows before them.

The first rows may be known only by what they give (`tables.governed.ledger_folds`): a fold says how many appends they are.

During a command (`SparkLedger.keep`), the rows that were read or appended are kept. A decision on rows that are no longer
all rows does no harm: its append fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.stored_rows import StoredFold, StoredRows, identity
from rewindow.errors import AccessError, CheckpointError, InvariantError, NotNowError, not_committed
from rewindow.tables.governed import ledger_folds
from rewindow.tables.governed.commit_history import last_version
from rewindow.tables.governed.ledger_folds import Found, Given, KeptFold, RecordedVersion
from rewindow.tables.governed.own_table import OwnTable, is_text, rows_of
from rewindow.tables.shared.ledger import check_numbered, load_body, new_token, not_next, stored_body

ROWS = "ROWS"
"""The kind of a table row that holds several ledger rows, or versions of its tables that a run recorded."""
_ATTEMPTS = 6


class _Append(NamedTuple):
    """The rows of an append, the stored text, and the versions of its tables that a run recorded before it."""

    rows: list[LedgerRow]
    text: str
    recorded: list[RecordedVersion]


class _Known(NamedTuple):
    """The appends that follow the stored fold of a ledger, or all without one."""

    later: list[_Append]
    kept: KeptFold | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return (self.kept.fold.rows if self.kept else 0) + sum(len(append.rows) for append in self.later)

    @property
    def appends(self) -> int:
        """The number of appends."""
        return (self.kept.appends if self.kept else 0) + len(self.later)

    @property
    def recorded(self) -> list[RecordedVersion]:
        """The versions that runs recorded, of each table the last one."""
        every = [
            *(self.kept.recorded if self.kept else ()),
            *(version for append in self.later for version in append.recorded),
        ]
        return list({(version.table, version.app): version for version in every}.values())


class SparkLedger:
    """The rows of one job or feed in a catalog's table. The first append creates the table."""

    def __init__(self, table: OwnTable, name: str, look: Callable[[str], Found] | None = None) -> None:
        """Bind to a table and a name. ``look`` returns the stored rows of a name. Nothing is read or created."""
        self._table, self.name = table, name
        self._stored = look or self._read_rows
        self._known: _Known | None = None
        self._held: list[LedgerRow] = []
        self._keeps = False
        self._earlier = _Earlier(self._all)

    def keep(self, *, keeps: bool) -> None:
        """Begin or end a command: forget what was read and held, and from now on keep what is read only if ``keeps``."""
        self._known, self._held, self._keeps = None, [], keeps
        self._earlier = _Earlier(self._all)

    def read(self) -> StoredRows:
        """Return this name's rows, in order, those held included.

        Raises `InvariantError` (70) if they are not numbered 1, 2, 3 ...
        """
        return self._rows_of(self._look(), self._held)

    def read_afresh(self) -> StoredRows:
        """Return all rows, read again even during a command."""
        return self._rows_of(self._look(afresh=True), [])

    def due_fold(self, give: Callable[[StoredRows], Given]) -> tuple[KeptFold, int] | None:
        """Return the fold of the stored rows, if it is time to store one, and since when reports are needed."""
        ledger = self._look()
        if len(ledger.later) < ledger_folds.EVERY:
            return None
        rows = self._rows_of(ledger, [])
        given = give(rows)
        fold = StoredFold(len(rows), identity(rows), frozenset(), given.lines)
        return KeptFold(fold, ledger.appends, tuple(ledger.recorded), given.landed), given.since_ms

    def is_overtaken(self) -> bool:
        """Return whether other processes have appended rows since the current command read this name's rows."""
        ledger = self._known
        return self._keeps and ledger is not None and self._look(afresh=True).rows > ledger.rows

    @property
    def count(self) -> int:
        """The number of appends."""
        return self._look().appends

    def later(self) -> tuple[KeptFold | None, list[list[LedgerRow]]]:
        """Return the stored fold, if there is one, and the rows after it, grouped by append."""
        ledger = self._look()
        return ledger.kept, [append.rows for append in ledger.later]

    def appends(self) -> list[list[LedgerRow]]:
        """Return all rows of the table, grouped by append."""
        ledger = self._look()
        return [append.rows for append in (self._all() if ledger.kept else ledger.later)]

    def recorded(self) -> list[RecordedVersion]:
        """Return the versions that runs recorded, of each table the last one."""
        return self._look().recorded

    def hold(self, rows: Sequence[LedgerRow]) -> bool:
        """Hold rows until the next append or `flush`, under the token of that. False if another writer took their number."""
        check_numbered(self.name, rows)
        if self._look().rows != rows[0].seq - 1:
            self._look(afresh=True)
            return False
        token = new_token()
        self._held = [replace(row, token=token) for row in rows]
        return True

    def flush(self) -> None:
        """Append the rows that are held. Raises `NotNowError` (75) if another process was faster."""
        if self._held:
            self.append([])

    def append(
        self, rows: Sequence[LedgerRow], more: pa.Table | None = None, recorded: Sequence[RecordedVersion] = ()
    ) -> bool:
        """Append rows, after those held and with ``more`` rows of the journal, in one commit that records what was ``recorded``.

        False if another writer took the number. Raises `NotNowError` (75) for that if rows were held: what was made since
        names their numbers. Raises `InvariantError` (70) for numbers that leave a gap, `StorageError` (74) if the rows did
        not land or that cannot be determined, `CheckpointError` (76) if rows were deleted.
        """
        was_held = bool(self._held)
        token = self._held[0].token if self._held else new_token()
        rows, self._held = [*self._held, *rows], []
        check_numbered(self.name, rows)
        first_seq = rows[0].seq
        kind, body = _packed(rows, recorded)
        text = stored_body(body, token)
        failure: Exception | None = None
        ledger = self._look()
        if ledger.rows != first_seq - 1:
            ledger = self._look(afresh=True)
        for attempt in range(_ATTEMPTS):
            if ledger.rows >= first_seq:
                break
            if ledger.rows != first_seq - 1:
                raise not_next(self.name, ledger.rows, first_seq)
            # Delta accepts any higher version, so only the next number makes this a compare-and-set.
            number = ledger.appends + 1
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
                made = _loaded(text, kind, rows[0].recorded_at, first_seq, str(self._table.name))
                self._known = ledger._replace(later=[*ledger.later, made])
                return True
            # A right that is missing is still missing in the next attempt.
            if isinstance(failure, AccessError):
                raise failure
            ledger = self._look(afresh=True)
        if ledger.rows < first_seq:
            if last_version(self._table.spark_of(), self._table.name, self._app_id) > ledger.appends:
                raise CheckpointError(
                    "catalog-ledger-rows-deleted",
                    "rows of the ledger of {name} were deleted from {table}: RESTORE the version of that "
                    "table before they were",
                    name=self.name,
                    table=self._table.name,
                )
            raise not_committed(f"row {first_seq} of the ledger {self.name}", _ATTEMPTS, failure) from failure
        has_landed = any(append.text == text for append in ledger.later)
        # Rows that were held have numbered what was made since, so the caller cannot decide again.
        if was_held and not has_landed:
            raise NotNowError(
                "ledger-decided-by-other",
                "{name}: another process decided first, so this one made nothing. Run the command again",
                name=self.name,
            )
        return has_landed

    @property
    def _app_id(self) -> str:
        return f"rewindow.ledger/{self.name}"

    def _look(self, *, afresh: bool = False) -> _Known:
        if self._known is None or afresh or not self._keeps:
            stored = self._read_rows(self.name) if afresh else self._stored(self.name)
            self._known = _Known(self._parsed(stored), stored.kept)
        return self._known

    def _rows_of(self, ledger: _Known, held: Sequence[LedgerRow]) -> StoredRows:
        rows = [*(row for append in ledger.later for row in append.rows), *held]
        return StoredRows(rows, ledger.kept.fold if ledger.kept else None, self._earlier)

    def _all(self) -> list[_Append]:
        return self._parsed(self._read_rows(self.name))

    def _read_rows(self, name: str) -> Found:
        return Found(self._table.texts(lambda: (F.col("name") == name) & F.col("seq").isNotNull() & is_text()))

    def _parsed(self, stored: Found) -> list[_Append]:
        rows = sorted((row for row in stored.rows if row["seq"] is not None), key=lambda row: int(row["seq"]))
        numbers, covered = [row["seq"] for row in rows], _Known([], stored.kept)
        if numbers != [covered.appends + number for number in range(1, len(numbers) + 1)]:
            raise InvariantError(
                "catalog-ledger-damaged",
                "the ledger of {name} in {table} is damaged: its last rows are numbered {numbers}. "
                "Restore the table from a copy before you run or land",
                name=self.name,
                table=self._table.name,
                numbers=numbers[-5:],
            )
        appends: list[_Append] = []
        before = covered.rows
        for row in rows:
            made = _loaded(row["body"], row["kind"], row["recorded_at"], before + 1, str(self._table.name))
            appends.append(made)
            before += len(made.rows)
        return appends


class _Earlier:
    """The rows that a stored fold covers, read when somebody asks for them."""

    def __init__(self, read: Callable[[], list[_Append]]) -> None:
        """Bind to what reads all rows of a ledger."""
        self._read = read
        self._rows: list[LedgerRow] = []

    def __call__(self, fold: StoredFold) -> list[LedgerRow]:
        """Return the rows. Raises as `SparkLedger.read` does."""
        if len(self._rows) < fold.rows:
            self._rows = [row for append in self._read() for row in append.rows]
        return self._rows[: fold.rows]


def _loaded(text: str, kind: str, recorded_at: int, first_seq: int, table: str) -> _Append:
    """Return a stored row, with its ledger rows numbered from ``first_seq``."""
    stored, token = load_body(text, table)
    bodies = stored["rows"] if kind == ROWS else [(kind, stored, recorded_at)]
    rows = [
        LedgerRow(seq, row_kind, body, at_ms, token) for seq, (row_kind, body, at_ms) in enumerate(bodies, first_seq)
    ]
    return _Append(
        rows, text, [RecordedVersion(*version) for version in stored.get("seen", ())] if kind == ROWS else []
    )


def _packed(rows: Sequence[LedgerRow], recorded: Sequence[RecordedVersion]) -> tuple[str, Mapping[str, Any]]:
    if len(rows) == 1 and not recorded:
        return rows[0].kind, rows[0].body
    body: dict[str, Any] = {"rows": [[row.kind, row.body, row.recorded_at] for row in rows]}
    return ROWS, {**body, "seen": recorded} if recorded else body
