"""The command that explains a row of an output, and the lines that it prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewindow.app.cli.completing import tables
from rewindow.app.cli.options import Branch, Debug, Folder, Json, Target
from rewindow.app.cli.printing import Printer
from rewindow.app.open_project import OpenProject
from rewindow.app.result_lines import as_assignments
from rewindow.app.times import ZONE, parse_time
from rewindow.contracts.instants import instant
from rewindow.control.health.phrases import landing_numbers
from rewindow.control.plan.spec import MAIN
from rewindow.errors import NothingFoundError
from rewindow.streams.duration import in_words
from rewindow.streams.serde.schema import has_bounds

if TYPE_CHECKING:
    from rewindow.app.why.answer_facts import MissingFacts, RecordFacts, RowFacts


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(why)


def why(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="An output table, or a job with one output.", autocompletion=tables)
    ],
    key: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY", help="The key: its value, COLUMN=VALUE for each of several columns, or a JSON object."
        ),
    ],
    window: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help=f"A time in the window, or its start if windows overlap {ZONE}. Default: the key's newest row.",
        ),
    ] = None,
    run: Annotated[str | None, typer.Option(metavar="RUN", help="The row that this run wrote, as main/3 or 3.")] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Say why there is no row of the key yet, or never will be.")
    ] = False,
    branch: Branch = MAIN,
    target: Target = "local",
    folder: Folder = ".",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Name the records and punctuations that made a row, or say why there is no row. Changes nothing. Times are in UTC."""
    # These modules are imported here, because the engine that replays a row loads slowly and other commands do not need it.
    from rewindow.app.why.asked_window import AskedTime
    from rewindow.app.why.key_form import check_columns, choose_row, null_key, read_key, without_key
    from rewindow.app.why.missing import explain_missing
    from rewindow.app.why.output import Output
    from rewindow.app.why.row import check_not_altered, explain_row

    project = OpenProject.open(folder, target, debug=debug)
    output = Output.find(project, table, branch)
    wanted, time_ms = read_key(output, key), parse_time(window)
    at = None if time_ms is None else AskedTime(output, key, time_ms, missing)
    printer = Printer(as_json=as_json)
    rows = output.rows(wanted)
    if not rows and (nulls := null_key(wanted)) and (of_nulls := output.rows(nulls)):
        wanted, rows = nulls, of_nulls
    if missing or not rows:  # Another program may have deleted or changed the row after it was published
        output.tables.check_published(output.job.name, output.state, output.branch.name)
        check_not_altered(output)
    if not rows:
        check_columns(output, key, wanted)
    keyless = None if rows else without_key(project, output, wanted)
    if keyless is not None and not missing:
        raise NothingFoundError(
            "key-without-row",
            "{table}: {reason}",
            table=output.table,
            reason=". ".join([keyless.headline, *keyless.reasons]),
        )
    if missing:
        absent = keyless or explain_missing(project, output, wanted, rows, at)
        if as_json:
            printer.json(absent.as_json())
        else:
            for line in missing_lines(absent):
                printer.say(line)
        return
    own, row = choose_row(output, key, rows, at, run)
    facts = explain_row(output, own, row, time_ms)
    if as_json:
        printer.json(facts.as_json())
        return
    columns = [column.name for column in output.key_columns]
    for line in row_lines(facts, columns, "" if at is not None else " ".join(key)):
        printer.say(line)


MOST_SHOWN = 20
"""At most this many records of each kind are shown. `--json` has all of them."""
_INTERNAL = ("_epoch", "_partition", "_offset", "_run")


def row_lines(facts: RowFacts, columns: Sequence[str], key: str) -> Iterator[str]:
    """Yield the lines that explain a row.

    ``columns`` are the columns of the output's key. ``key`` has the words of the key on the command line. If the user named a
    time, ``key`` is empty, because the other rows of the key are then not listed.
    """
    yield from _which_window(facts.asked_ms, facts.row[columns[-2]] if has_bounds(columns) else None)
    yield f"{facts.table}: {_row(facts.row, columns)}"
    run = facts.run
    yield f"Written by run {run.run} ({landing_numbers(run.first_epoch, run.last_epoch)}, code {run.code})."
    yield _sent(facts)
    yield ""
    yield from _listed("Made of", "record", facts.records)
    if facts.clock_records:
        yield from _listed("Time or window decided by", "more record", facts.clock_records)
    if len(facts.punctuations) > MOST_SHOWN:
        yield f"  the last {MOST_SHOWN} of {len(facts.punctuations):,} punctuations (--json lists all):"
    for punctuation in facts.punctuations[-MOST_SHOWN:]:
        yield f"  punctuation of {punctuation.node}, due {instant(punctuation.due_ms)}"
    if facts.late:
        yield f"Dropped, so not in the row: {_count(len(facts.late), 'record')}"
        for late in facts.late[:MOST_SHOWN]:
            yield f"  {_record(late.record)}: {late.reason} in {late.node}, {in_words(late.behind_ms)} behind"
        yield from _more(len(facts.late))
    if facts.unused:
        yield from _listed(
            "Of the same key and window, but filtered out by a condition or function of the job:",
            "record",
            facts.unused,
        )
    yield ""
    yield _checked(facts)
    for note in facts.notes:
        yield f"{note}."
    others = facts.row_count - 1
    if others and key:
        yield ""
        yield f"The key has {_count(others, 'other row')}; --window TIME and --run RUN choose:"
        shown = [other for other in facts.rows if other != facts.row]
        yield from (f"  {_row(other, columns)}" for other in shown)
        if others > len(shown):
            yield f"  and {others - len(shown):,} more, which are older"


def missing_lines(facts: MissingFacts) -> Iterator[str]:
    """Yield the lines that explain why there is no row."""
    yield from _which_window(facts.asked_ms, facts.window_start_ms)
    yield f"{facts.table}: {facts.headline}."
    for reason in facts.reasons:
        yield f"- {reason}."
    if facts.records:
        yield ""
        start_ms = facts.window_start_ms
        which = "" if start_ms is None else f" in the window from {instant(start_ms)}"
        yield from _listed("The logs have", f"record of the key{which}", facts.records)


def _which_window(asked_ms: int | None, start_ms: int | None) -> Iterator[str]:
    """Yield which window contains the time that the user named; nothing if this time is the window's start."""
    if asked_ms is not None and start_ms not in (None, asked_ms):
        yield f"{instant(asked_ms)} is in the window from {instant(start_ms)}:"


def _sent(facts: RowFacts) -> str:
    sent = facts.sent
    if sent.punctuation is not None:
        return f"Sent by the punctuation of {sent.punctuation.node} that was due {instant(sent.punctuation.due_ms)}."
    if sent.record is not None:
        held = (
            "It waited in a store until this record advanced the time"
            if sent.is_held
            else "Sent when this record was processed"
        )
        return f"{held}: {_record(sent.record)}."
    watermark = "" if sent.watermark_ms is None else f", which is complete through {instant(sent.watermark_ms)}"
    return f"Sent at the end of landing {sent.epoch}{watermark}."


def _checked(facts: RowFacts) -> str:
    if facts.is_exact:
        return "Replaying these records alone gives the same row."
    if facts.is_reproduced:
        return "Replaying these records alone gives the same row. Some of them may not have contributed: code read them as well."
    return (
        "Replaying these records alone does not give the same row: it also depends on something that cannot be traced, such as "
        "a clock that other records advanced."
    )


def _listed(head: str, unit: str, records: Sequence[RecordFacts]) -> Iterator[str]:
    yield f"{head} {_count(len(records), unit)}"
    for record in records[:MOST_SHOWN]:
        yield f"  {_record(record)}"
    yield from _more(len(records))


def _more(count: int) -> Iterator[str]:
    if count > MOST_SHOWN:
        yield f"  and {count - MOST_SHOWN:,} more (--json lists all)"


def _record(record: RecordFacts) -> str:
    landing = "" if record.landing is None else f", landing {record.landing}"
    columns = as_assignments(record.record)
    return (
        f"{record.topic}-{record.partition} offset {record.offset}, {instant(record.timestamp_ms)}{landing}: {columns}"
    )


def _row(row: Any, keys: Sequence[str]) -> str:
    return as_assignments({name: value for name, value in row.items() if name not in _INTERNAL}, keys)


def _count(number: int, unit: str) -> str:
    return (
        f"{number:,} {unit}"
        if number == 1
        else f"{number:,} {unit.replace('record', 'records').replace('row', 'rows')}"
    )
