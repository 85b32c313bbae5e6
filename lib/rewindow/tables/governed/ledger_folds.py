"""What the first rows of ledgers give, as rows of rewindow's own table in a catalog, so that no command reads all rows (ADR-138).

The fold of the ledger of ``X`` is one row of the partition ``fold:X``, which each new one replaces. A mark, a property of the
view of the metrics, says how many appends some fold of ``X`` covers. So a command that has read the marks, which takes no Spark
job, asks in its one query for the folds and the rows after them, and Delta skips the files with earlier ones.

The rows decide. A fold that is missing, torn, of another version or older than its mark is as good as none, and so is a mark
that is missing.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.spec import MAIN
from rewindow.control.plan.stored_rows import StoredFold, StoredRows
from rewindow.control.plan.stored_state import state_lines
from rewindow.engine.spark.spark_job import mapped
from rewindow.errors import RewindowError
from rewindow.tables.governed.own_table import FOLD, OwnTable, fold_name, is_text, rows_of
from rewindow.tables.shared.folded_jobs import JobStates
from rewindow.tables.shared.ledger import now_ms, packed, unpacked

EVERY = 200
"""A fold is stored when so many appends follow the last one."""
_PROPERTY = "rewindow.fold."
_SLACK_MS = 24 * 3_600_000
"""Reports are recorded before the COMMIT of their run, by the clocks of other machines."""


class RecordedVersion(NamedTuple):
    """The last version of an application id at a Delta version of a table, which then had exactly the published rows."""

    table: str
    app: str
    version: int
    reached: int


class Mark(NamedTuple):
    """A fold covers at least so many appends. Reports recorded before ``since_ms`` (epoch ms) are not needed by the next runs."""

    appends: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class KeptFold:
    """The stored fold of a ledger: the appends that it covers, and the versions of tables that runs recorded in them.

    In a feed's ledger, ``landed`` says what the appends landed (`tables.governed.log_tables`).
    """

    fold: StoredFold
    appends: int
    recorded: tuple[RecordedVersion, ...] = ()
    landed: Mapping[str, Any] = field(default_factory=dict)


class Given(NamedTuple):
    """What the rows of a ledger give, as lines, since when (epoch ms) reports are needed, and `KeptFold.landed`."""

    lines: Sequence[str]
    since_ms: int
    landed: Mapping[str, Any] = {}


class Found(NamedTuple):
    """The stored rows of a ledger after its fold, if it has one, and the reports among them."""

    rows: list[Row]
    kept: KeptFold | None = None


class StoredFolds:
    """The folds of the ledgers in one table."""

    def __init__(self, table: OwnTable) -> None:
        """Bind to a table. Nothing is read."""
        self._table = table
        self._known: dict[str, KeptFold] = {}

    def read(self, names: Sequence[str], *, with_reports: bool) -> dict[str, Found]:
        """Return the rows of some ledgers, in one query unless a fold is lost."""
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
        """Store a mark and a fold. A failure costs later commands time, and nothing else.

        The mark comes first: a user who may not alter the view would otherwise store folds again and again that nobody finds.
        """
        more = {"appends": kept.appends, "seen": kept.recorded, "landed": kept.landed}
        body = b64encode(packed(name, kept.fold, more)).decode()
        values: dict[str, list[Any]] = {
            "name": [fold_name(name)],
            "kind": [FOLD],
            "body": [body],
            "recorded_at": [now_ms()],
        }
        stated = json.dumps(Mark(kept.appends, since_ms))
        with suppress(RewindowError), mapped():
            view = self._table.view.quoted
            self._table.spark_of().sql(f"ALTER VIEW {view} SET TBLPROPERTIES ('{_PROPERTY}{name}' = '{stated}')")
            self._table.replace(fold_name(name), rows_of(values, 1))

    def _marks(self, names: Sequence[str]) -> dict[str, Mark]:
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
                marks[name] = Mark(*map(int, json.loads(kept[f"{_PROPERTY}{name}"])))
        return marks

    def _found(self, name: str, rows: Sequence[Row], mark: Mark | None) -> Found | None:
        """Return what was found of a ledger; None if rows before ``mark`` were left out that no fold covers."""
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
        """Return a stored fold: the same object for the same text, so that a state is not folded again."""
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


def _of_all(names: Sequence[str], marks: Mapping[str, Mark]) -> Expression:
    """Return the condition of the rows of some ledgers that their folds do not cover, and of these folds."""
    unmarked = [name for name in names if name not in marks]
    parts = [F.col("name").isin(unmarked)] if unmarked else []
    for name, mark in marks.items():
        is_later = (F.col("seq") > mark.appends) | (F.col("seq").isNull() & (F.col("recorded_at") >= mark.since_ms))
        parts += [F.col("name") == fold_name(name), (F.col("name") == name) & is_later]
    return reduce(or_, parts)


def give_state(rows: StoredRows) -> Given:
    """Return what the rows of a job's ledger give."""
    state = JobStates().fold("this job", rows)
    return Given(state_lines(state), _oldest_report(state))


def _oldest_report(state: JobState) -> int:
    """Return since when (epoch ms) the runs were committed from which the next one resumes; 0 if that is unknown."""
    head = state.branches[MAIN].head if MAIN in state.branches else None
    needed = (head, *state.basis(head.spec.run)) if head else ()
    return max(min((run.recorded_at for run in needed), default=0) - _SLACK_MS, 0)
