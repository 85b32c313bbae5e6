"""The ledger through Spark: the same compare-and-set as `tables.delta.ledger` (design, "The commit").

A writer uses the next free number as the version of an application id that all writers to this ledger share. Delta accepts
only a version above all earlier versions, and rejects one of two concurrent commits. So the row lands with that number, or
not at all. What Spark returns or raises decides nothing. Delta's note shows that the commit landed (`commit_noted`). If there
is no note, the token of the commit with that number shows whose commit it is. The token is in the history or, if not there,
in the rows.

Delta accepts any higher version, but an append is a compare-and-set only if its version is higher by one. So ledger rows that
are appended together are one row of the table (``ROWS``). The version counts appends. The number of a ledger row follows from
the number of rows before it.

A stored fold, which is the state after the ledger's first rows, may be read in place of these rows. It states how many
appends it covers.

During a command (`SparkLedger.keep`), rows that were read or appended stay in memory. Another process may have appended
since. A decision that is based on the old rows then does no harm, because its append fails.

The stored fold of the ledger ``X`` is one row of the partition ``fold:X``, and each new fold replaces it. A mark, which is a
property of the metrics view, states how many appends a stored fold of ``X`` covers. A command first reads the marks, which
takes no Spark job. Then one query returns the folds and the rows after them, and Delta skips the files with earlier rows.

Only the rows are authoritative. A fold that is missing, damaged, of another version or older than its mark is not used. If
there is no usable fold or no mark, all rows are read.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.spec import MAIN
from rewindow.control.plan.stored_rows import StoredFold, StoredRows, identity
from rewindow.control.plan.stored_state import state_lines
from rewindow.engine.spark.spark_calls import mapped
from rewindow.errors import AccessError, CheckpointError, InvariantError, NotNowError, RewindowError, not_committed
from rewindow.tables.governed.own_table import FOLD, OwnTable, fold_name, is_text, rows_of
from rewindow.tables.governed.table_history import last_version
from rewindow.tables.shared.ledger import (
    JobStates,
    check_numbered,
    load_body,
    new_token,
    not_next,
    now_ms,
    packed,
    stored_body,
    unpacked,
)

ROWS = "ROWS"
"""The kind of a table row with several ledger rows, or with table versions that a run recorded (`RecordedVersion`)."""
_ATTEMPTS = 6


class _Append(NamedTuple):
    """An append: its ledger rows, its stored text, and the table versions that a run recorded in it."""

    rows: list[LedgerRow]
    text: str
    recorded: list[RecordedVersion]


class _Known(NamedTuple):
    """A ledger as it was read: its stored fold, if any, and the appends after that fold."""

    later: list[_Append]
    kept: KeptFold | None = None

    @property
    def rows(self) -> int:
        """The number of ledger rows, including rows that the fold covers."""
        return (self.kept.fold.rows if self.kept else 0) + sum(len(append.rows) for append in self.later)

    @property
    def appends(self) -> int:
        """The number of appends, including appends that the fold covers."""
        return (self.kept.appends if self.kept else 0) + len(self.later)

    @property
    def recorded(self) -> list[RecordedVersion]:
        """The last version that a run recorded, for each table and application id."""
        every = [
            *(self.kept.recorded if self.kept else ()),
            *(version for append in self.later for version in append.recorded),
        ]
        return list({(version.table, version.app): version for version in every}.values())


class SparkLedger:
    """The rows of one job or feed in a catalog's table. The first append creates the table."""

    def __init__(self, table: OwnTable, name: str, look: Callable[[str], Found] | None = None) -> None:
        """Bind to a table and a name. Nothing is read or created.

        ``look`` returns the stored rows of a name. If it is None, they are read from the table.
        """
        self._table, self.name = table, name
        self._stored = look or self._read_rows
        self._known: _Known | None = None
        self._held: list[LedgerRow] = []
        self._keeps = False
        self._earlier = _Earlier(self._all)

    def keep(self, *, keeps: bool) -> None:
        """Begin or end a command: drop all rows that were read or held.

        ``keeps``: whether rows that are read next stay in memory.
        """
        self._known, self._held, self._keeps = None, [], keeps
        self._earlier = _Earlier(self._all)

    def read(self) -> StoredRows:
        """Return the rows of the job or feed, in order, including held rows.

        Raises `InvariantError` (70) if the rows are not numbered 1, 2, 3 ...
        """
        return self._rows_of(self._look(), self._held)

    def read_afresh(self) -> StoredRows:
        """Read all stored rows again, even during a command, and return them."""
        return self._rows_of(self._look(afresh=True), [])

    def due_fold(self, give: Callable[[StoredRows], Given]) -> tuple[KeptFold, int] | None:
        """Return a new fold, and the time since which reports are needed (epoch ms). Return None if no new fold is due.

        The fold is the state after all stored rows. ``give``: the function that folds rows.
        """
        ledger = self._look()
        if len(ledger.later) < EVERY:
            return None
        rows = self._rows_of(ledger, [])
        given = give(rows)
        fold = StoredFold(len(rows), identity(rows), frozenset(), given.lines)
        return KeptFold(fold, ledger.appends, tuple(ledger.recorded), given.landed), given.since_ms

    def is_overtaken(self) -> bool:
        """Return whether other processes have appended rows since the current command read the ledger."""
        ledger = self._known
        return self._keeps and ledger is not None and self._look(afresh=True).rows > ledger.rows

    @property
    def count(self) -> int:
        """The number of appends."""
        return self._look().appends

    def later(self) -> tuple[KeptFold | None, list[list[LedgerRow]]]:
        """Return the stored fold (None if there is none), and the rows after it, grouped by append."""
        ledger = self._look()
        return ledger.kept, [append.rows for append in ledger.later]

    def appends(self) -> list[list[LedgerRow]]:
        """Return all ledger rows, including rows that the stored fold covers, grouped by append."""
        ledger = self._look()
        return [append.rows for append in (self._all() if ledger.kept else ledger.later)]

    def recorded(self) -> list[RecordedVersion]:
        """Return the last version that a run recorded, for each table and application id."""
        return self._look().recorded

    def hold(self, rows: Sequence[LedgerRow]) -> bool:
        """Hold rows in memory until the next append or `flush` appends them. Return False if their numbers are used."""
        check_numbered(self.name, rows)
        if self._look().rows != rows[0].seq - 1:
            self._look(afresh=True)
            return False
        token = new_token()
        self._held = [replace(row, token=token) for row in rows]
        return True

    def flush(self) -> None:
        """Append the rows that are held. Raises `NotNowError` (75) if another process has appended first."""
        if self._held:
            self.append([])

    def append(
        self, rows: Sequence[LedgerRow], more: pa.Table | None = None, recorded: Sequence[RecordedVersion] = ()
    ) -> bool:
        """Append the held rows and then ``rows``, in one commit. Return False if another writer has used their numbers.

        ``more``: rows of the journal for the same commit. ``recorded``: table versions that the commit records.

        If rows were held and another writer has used their numbers, raises `NotNowError` (75). Raises `InvariantError` (70) for
        numbers that leave a gap, `StorageError` (74) unless it is certain that the rows landed, and `CheckpointError` (76) if
        rows were deleted.
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
            # Delta accepts any higher version of a transaction. Only with the next number is an append a compare-and-set.
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
            # If a right is missing, it would also be missing in the next attempt.
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
        # Other rows and blocks already contain the numbers of the held rows. So the caller cannot just decide again.
        if was_held and not has_landed:
            raise NotNowError(
                "ledger-decided-by-other",
                "{name}: another process decided first, so this command committed nothing. Run the command again",
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
    """The rows that a stored state (fold) replaces. They are read only when they are needed."""

    def __init__(self, read: Callable[[], list[_Append]]) -> None:
        """``read``: reads all appends of a ledger. Nothing is read yet."""
        self._read = read
        self._rows: list[LedgerRow] = []

    def __call__(self, fold: StoredFold) -> list[LedgerRow]:
        """Return the rows that ``fold`` covers. Raises as `SparkLedger.read` does."""
        if len(self._rows) < fold.rows:
            self._rows = [row for append in self._read() for row in append.rows]
        return self._rows[: fold.rows]


def _loaded(text: str, kind: str, recorded_at: int, first_seq: int, table: str) -> _Append:
    """Parse a stored row of the table. Its ledger rows are numbered from ``first_seq``."""
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


EVERY = 200
"""The state of a ledger is stored again (as its fold) after this many appends."""
_PROPERTY = "rewindow.fold."
_SLACK_MS = 24 * 3_600_000
"""A report may have been recorded this long before the COMMIT of its run, because machines' clocks differ."""


class RecordedVersion(NamedTuple):
    """A Delta version of a table at which the table had exactly the published rows.

    ``app``: an application id. ``reached``: the last version under this id, as of that Delta version.
    """

    table: str
    app: str
    version: int
    reached: int


class _Mark(NamedTuple):
    """The mark of a stored fold, which covers at least ``appends`` appends.

    The next runs need no reports from before ``since_ms`` (epoch ms).
    """

    appends: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class KeptFold:
    """The stored fold of a ledger: the state after its first rows.

    ``appends``: how many appends the fold covers. ``recorded``: the table versions that runs recorded in these appends.
    ``landed``: in a feed's ledger, what these appends landed (`log_tables.to_store`).
    """

    fold: StoredFold
    appends: int
    recorded: tuple[RecordedVersion, ...] = ()
    landed: Mapping[str, Any] = field(default_factory=dict)


class Given(NamedTuple):
    """The state that results from a ledger's rows, as lines.

    ``since_ms``: the time since which reports are needed (epoch ms). ``landed``: see `KeptFold`.
    """

    lines: Sequence[str]
    since_ms: int
    landed: Mapping[str, Any] = {}


class Found(NamedTuple):
    """The stored fold of a ledger, if any, and the stored rows after it. Reports of the journal may be among the rows."""

    rows: list[Row]
    kept: KeptFold | None = None


class StoredFolds:
    """The stored states (folds) of the ledgers in one table."""

    def __init__(self, table: OwnTable) -> None:
        """Bind to a table. Nothing is read."""
        self._table = table
        self._known: dict[str, KeptFold] = {}

    def read(self, names: Sequence[str], *, with_reports: bool) -> dict[str, Found]:
        """Return the stored fold and rows of each ledger, by name. One query reads them all.

        If folds are lost, a second query reads all rows of these ledgers. ``with_reports``: whether to read reports, too.
        """
        marks = self._marks(names)
        kinds = is_text if with_reports else lambda: is_text() & (F.col("seq").isNotNull() | (F.col("kind") == FOLD))
        rows = self._table.texts(lambda: _of_all(names, marks) & kinds())
        ledgers = {name: ledger for name in names if (ledger := self._found(name, rows, marks.get(name))) is not None}
        lost = [name for name in names if name not in ledgers]
        if lost:
            rows = self._table.texts(lambda: F.col("name").isin(lost) & kinds())
            ledgers |= {name: Found(_of(name, rows)) for name in lost}
        return ledgers

    def write(self, name: str, kept: KeptFold, since_ms: int) -> None:
        """Store a mark and a fold. A failure is ignored, because it only makes later commands slower."""
        more = {"appends": kept.appends, "seen": kept.recorded, "landed": kept.landed}
        body = b64encode(packed(name, kept.fold, more)).decode()
        values: dict[str, list[Any]] = {
            "name": [fold_name(name)],
            "kind": [FOLD],
            "body": [body],
            "recorded_at": [now_ms()],
        }
        stated = json.dumps(_Mark(kept.appends, since_ms))
        # The mark is stored first. Otherwise a user who may not alter the view would store folds again and again, and no
        # command would find them.
        with suppress(RewindowError), mapped():
            view = self._table.view.quoted
            self._table.spark_of().sql(f"ALTER VIEW {view} SET TBLPROPERTIES ('{_PROPERTY}{name}' = '{stated}')")
            self._table.replace(fold_name(name), rows_of(values, 1))

    def _marks(self, names: Sequence[str]) -> dict[str, _Mark]:
        if not self._table.exists():
            return {}
        kept: dict[str, str] = {}
        # The view may be missing, or hidden from this user.
        with suppress(RewindowError), mapped():
            rows = self._table.spark_of().sql(f"SHOW TBLPROPERTIES {self._table.view.quoted}").collect()
            kept = {row["key"]: row["value"] for row in rows}
        marks = {}
        for name in names:
            with suppress(LookupError, ValueError, TypeError):
                marks[name] = _Mark(*map(int, json.loads(kept[f"{_PROPERTY}{name}"])))
        return marks

    def _found(self, name: str, rows: Sequence[Row], mark: _Mark | None) -> Found | None:
        """Return a ledger's fold and rows from ``rows``; None if there is a ``mark``, but no fold covers as many appends."""
        own = _of(name, rows)
        if mark is None:
            return Found(own)
        folds = [row["body"] for row in rows if row["name"] == fold_name(name)]
        kept = max(
            filter(None, (self._kept(name, text) for text in folds)), key=lambda fold: fold.appends, default=None
        )
        if kept is None or kept.appends < mark.appends:
            return None
        return Found([row for row in own if row["seq"] is None or row["seq"] > kept.appends], kept)

    def _kept(self, name: str, text: str) -> KeptFold | None:
        """Parse a stored fold; None if it cannot be used. Equal folds give the same object, so its state is computed once."""
        with suppress(ValueError, LookupError, TypeError):
            removal = f"Run `DELETE FROM {self._table.name} WHERE name = '{fold_name(name)}'`"  # noqa: S608 - for the user to read
            stored = unpacked(name, b64decode(text), removal)
            if stored is None:
                return None
            fold, head = stored
            kept_before = self._known.get(name)
            if kept_before is None or kept_before.fold.digest != fold.digest:
                recorded = tuple(RecordedVersion(*values) for values in head["seen"])
                self._known[name] = KeptFold(fold, head["appends"], recorded, head["landed"])
            return self._known[name]
        return None


def _of(name: str, rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["name"] == name]


def _of_all(names: Sequence[str], marks: Mapping[str, _Mark]) -> Expression:
    """Return the condition that selects the stored folds of ledgers, and the rows after them."""
    unmarked = [name for name in names if name not in marks]
    parts = [F.col("name").isin(unmarked)] if unmarked else []
    for name, mark in marks.items():
        is_later = (F.col("seq") > mark.appends) | (F.col("seq").isNull() & (F.col("recorded_at") >= mark.since_ms))
        parts += [F.col("name") == fold_name(name), (F.col("name") == name) & is_later]
    return reduce(or_, parts)


def give_state(rows: StoredRows) -> Given:
    """Return the state that results from the rows of a job's ledger."""
    state = JobStates().fold("this job", rows)
    return Given(state_lines(state), _oldest_report(state))


def _oldest_report(state: JobState) -> int:
    """Return a time (epoch ms) before all reports of the runs that the next run builds on; 0 if no such time is known."""
    head = state.branches[MAIN].head if MAIN in state.branches else None
    needed = (head, *state.basis(head.spec.run)) if head else ()
    return max(min((run.recorded_at for run in needed), default=0) - _SLACK_MS, 0)
