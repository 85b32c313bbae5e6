"""The facts that `why` reports, as plain values. Times are epoch milliseconds in UTC, None if the time is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from rewindow.app.why.output import Output
from rewindow.engine.worker.provenance.logs import table_of
from rewindow.errors import ReasonMessage
from rewindow.tables.shared.state_query import as_rows

Columns = Mapping[str, Any]


def json_row(row: Columns) -> dict[str, Any]:
    """Return a row as values that can be written as JSON."""
    return json_rows([row])[0]


def json_rows(rows: Sequence[Columns]) -> list[dict[str, Any]]:
    """Return rows with the same columns as values that can be written as JSON."""
    return as_rows(table_of(rows))


@dataclass(frozen=True, slots=True)
class RecordFacts:
    """A record of a log: its position, the landing that added it, the epoch that released it, and its columns."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    landing: int | None
    epoch: int
    record: Columns


@dataclass(frozen=True, slots=True)
class PunctuationFacts:
    """A punctuation: its node, when it was due, and the epoch in which it ran."""

    node: str
    due_ms: int
    epoch: int


@dataclass(frozen=True, slots=True)
class LateFacts:
    """A record of the same key that a node dropped.

    ``behind_ms`` is how far the record's time was behind the node's clock or an earlier record.
    """

    record: RecordFacts
    node: str
    reason: str
    behind_ms: int


@dataclass(frozen=True, slots=True)
class SentFacts:
    """The event at which a node sent the row: a record, a punctuation, or the end of an epoch.

    ``is_held`` says whether the node had held the row back until this event.
    """

    epoch: int
    watermark_ms: int | None
    record: RecordFacts | None
    punctuation: PunctuationFacts | None
    is_held: bool


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The run that wrote the row, and the version of its code. ``first_epoch`` and ``last_epoch`` are numbers of landings."""

    run: str
    ledger_row: int
    first_epoch: int
    last_epoch: int
    committed_ms: int
    code: str
    fingerprint: str
    final: bool


@dataclass(frozen=True, slots=True)
class RowFacts:
    """The explanation of a row.

    ``asked_ms`` is the time that the user named to select the row's window. ``rows`` lists rows of the key, newest first.
    ``row`` is the one that is explained. ``is_reproduced`` says whether a replay of only the named records gives the row.
    ``is_exact`` says whether each of ``records`` certainly contributed to the row.
    """

    table: str
    job: str
    branch: str
    asked_ms: int | None
    row: Columns
    rows: Sequence[Columns]
    row_count: int
    run: RunFacts
    sent: SentFacts
    records: Sequence[RecordFacts]
    clock_records: Sequence[RecordFacts]
    punctuations: Sequence[PunctuationFacts]
    late: Sequence[LateFacts]
    unused: Sequence[RecordFacts]
    is_reproduced: bool
    is_exact: bool
    notes: Sequence[ReasonMessage]

    def as_json(self) -> dict[str, Any]:
        """Return the facts as JSON values, with the codes of the notes."""
        return {**asdict(self), "note_codes": [note.code for note in self.notes]}


class Missing(StrEnum):
    """Codes for the reasons why there is no row."""

    EXISTS = "exists"
    DELETED = "deleted"
    NOT_RUN = "not_run"
    NEVER_LANDED = "never_landed"
    NOT_TAKEN = "not_taken"
    DROPPED = "dropped"
    LET_GO = "let_go"
    OPEN = "open"
    WAITING = "waiting"
    NO_KEY = "no_key"


@dataclass(frozen=True, slots=True)
class OpenFacts:
    """An open window of the key: it closes at ``closes_at_ms``, and has this many records so far."""

    start_ms: int
    end_ms: int
    closes_at_ms: int
    records: int


@dataclass(frozen=True, slots=True)
class MissingFacts:
    """Why a key has no row. ``records`` are the key's records in the window, ``late`` those that were dropped.

    ``asked_ms`` is the time that the user named, ``window_start_ms`` the start of the window that contains this time. The
    result is final when the clock of the task ``partition`` reaches ``closes_at_ms``. The clock is at ``clock_ms`` now. If the
    user named no time, ``open_windows`` lists the open windows of the key, and the other fields describe the first of them.
    """

    table: str
    job: str
    branch: str
    why: Missing
    headline: ReasonMessage
    reasons: Sequence[ReasonMessage]
    partition: int
    asked_ms: int | None
    window_start_ms: int | None
    closes_at_ms: int | None
    clock_ms: int | None
    watermark_ms: int | None
    records: Sequence[RecordFacts]
    late: Sequence[LateFacts]
    open_windows: Sequence[OpenFacts]

    def as_json(self) -> dict[str, Any]:
        """Return the facts as JSON values, with the codes of the sentences."""
        codes = [reason.code for reason in self.reasons]
        return {**asdict(self), "headline_code": self.headline.code, "reason_codes": codes}


def no_answer(
    output: Output, why: Missing, headline: ReasonMessage, reasons: Sequence[ReasonMessage], **others: Any
) -> MissingFacts:
    """Return why an output has no row of a key. ``others``: further fields, with the times and records that are known."""
    nothing = {
        "partition": 0,
        "asked_ms": None,
        "window_start_ms": None,
        "closes_at_ms": None,
        "clock_ms": None,
        "watermark_ms": None,
    }
    known: dict[str, Any] = {**nothing, "records": [], "late": [], "open_windows": [], **others}
    return MissingFacts(output.table, output.job.name, output.branch.name, why, headline, reasons, **known)
