"""Read the key from the words of a command. A part of it may be null. Choose the row of the key to explain."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from rewindow.app.open_project import OpenProject
from rewindow.app.why.answer_facts import Missing, MissingFacts, no_answer
from rewindow.app.why.asked_window import AskedTime
from rewindow.app.why.history import History
from rewindow.app.why.key_records import ask
from rewindow.app.why.output import Output, Row
from rewindow.config.load import load_job
from rewindow.contracts.instants import instant
from rewindow.control.health.inputs import DETAILED_RUNS
from rewindow.control.health.phrases import command_words, keep_dropped, see_quarantined
from rewindow.control.plan.branch_decisions import find_run
from rewindow.errors import ConfigError, DataError, NothingFoundError, ReasonMessage, SourceError, UsageError
from rewindow.streams.metrics import SKIPPED_RECORDS, sum_by_reason
from rewindow.streams.serde.canonical_json import dump_value
from rewindow.streams.serde.normalizers import coerce_text, coercer
from rewindow.streams.serde.schema import Column

_MOST_NAMED = 5
"""The maximum number of windows of a key that a message lists."""
_MOST_RUNS = 5
_NO_KEY = (None, "", "null", '""')
_COLUMN_AND_VALUE = re.compile(r"([^\W\d][\w.-]*)=.+", re.DOTALL)


def read_key(output: Output, words: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Return the possible values of each column of a key, by column (see `parse_key`).

    Raises `UsageError` (2) for words that are no key of the table. The error shows a key that the table has. If options were
    written after `--`, the error shows the command with the options before the key.
    """
    try:
        return parse_key(output.own_columns, words)
    except UsageError as error:
        error.surrounded(after=_options_first(output, words) or example(output))
        raise


def parse_key(columns: Sequence[Column], words: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Return the possible values of each key column. The words are a value, ``COLUMN=VALUE`` pairs, or a JSON object.

    In a column of JSON, a text may mean this text or the JSON value that it denotes. Raises `UsageError` (2) if the words do
    not name exactly the columns of the key, or if a value does not fit its column.
    """
    types = {column.name: column.type for column in columns}
    object_ = _of_json(words[0]) if len(words) == 1 else {}
    given: dict[str, str | None] = {}
    if set(object_) == set(types):
        given = object_
    elif len(words) == 1 and len(types) == 1 and not words[0].startswith(f"{columns[0].name}="):
        given = {columns[0].name: words[0]}
    else:
        for word in words:
            name, equals, value = word.partition("=")
            if not equals:
                raise UsageError(
                    "key-word-without-column",
                    "{word!r} names no column: write COLUMN=VALUE for each of {columns}",
                    word=word,
                    columns=", ".join(types),
                )
            given[name] = value
    if set(given) != set(types):
        raise UsageError(
            "key-columns-differ",
            "the key has the columns {columns}, but {given} was given: name each once",
            columns=", ".join(types),
            given=", ".join(given) or "none",
        )
    return {name: _values(given[name], Column(name, types[name])) for name in types}


def _of_json(text: str) -> dict[str, str | None]:
    """Return the members of a JSON object as text, or None for null, by name; empty for any other text."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(parsed, dict):
        return {}
    return {
        name: value if value is None or isinstance(value, str) else json.dumps(value) for name, value in parsed.items()
    }


def _values(text: str | None, column: Column) -> Sequence[Any]:
    """Return the values that a text may mean in a column. None means null.

    In a column of neither text nor JSON, "" and ``null`` also mean null.
    """
    if text is None:
        return [None]
    if text in ("", "null") and column.type not in ("string", "json"):
        return [None]
    try:
        match column.type:
            case "string":
                return [coerce_text(text)]
            case "long":
                return [coercer("long")(int(text))]
            case "double":
                return [float(text)]
            case "boolean":
                return [{"true": True, "false": False}[text.lower()]]
            case "binary":
                return [bytes.fromhex(text)]
            case "json":
                return [dump_value(text), *_canonical(text)]
            case _:
                return [coercer(column.type)(Decimal(text))]
    except (ValueError, KeyError, InvalidOperation, DataError) as error:
        raise UsageError(
            "key-value-invalid",
            "{given!r} is not a value of the column {column!r}, which has the type {type}",
            given=text,
            column=column.name,
            type=column.type,
        ) from error


def _canonical(text: str) -> Iterable[str]:
    try:
        return [dump_value(json.loads(text))]
    except (ValueError, RecursionError):
        return []


def _options_first(output: Output, words: Sequence[str]) -> str:
    """Return a sentence that shows the command with its options before the key.

    The sentence is empty if no word after the key looks like an option.
    """
    first = next((number for number, word in enumerate(words) if number and word.startswith("--")), None)
    if first is None:
        return ""
    key, options = words[:first], words[first:]
    command = f"rewindow why {command_words(output.table, output.branch.name)} {shlex.join([*options, '--', *key])}"
    return (
        f". {options[0]} is read as a part of the key, because it follows `--`. Write options before that: `{command}`"
    )


def check_columns(output: Output, words: Sequence[str], key: Mapping[str, Sequence[Any]]) -> None:
    """Raise `UsageError` (2) if the command line names a column that the key does not have, as in ``colour=red``.

    A key of one column may be given as its value alone. So ``colour=red`` may also be the value, and there is no error if a
    record has this value as its key. ``key`` is the key read in this way. The table has no row of it.
    """
    columns = [column.name for column in output.own_columns]
    named = _COLUMN_AND_VALUE.fullmatch(words[0]) if len(words) == len(columns) == 1 else None
    if named is None or named[1] in columns or is_landed(output, key):
        return
    raise UsageError(
        "key-column-unknown",
        "the key of {table} has no column {column!r}: it is the column {key_column!r}. Write its value alone, "
        "or {key_column}=VALUE{example}",
        table=output.table,
        column=named[1],
        key_column=columns[0],
        example=example(output),
    )


def is_landed(output: Output, key: Mapping[str, Sequence[Any]]) -> bool:
    """Return whether a landed record has a key. False if the logs cannot be read."""
    if output.branch.head is None:
        return False
    past = History(output, output.branch.head)
    try:
        past.check()
    except (ConfigError, SourceError):
        return False
    records = ask(past, key, None, None)
    return bool(records.taken or records.waiting)


def example(output: Output) -> str:
    """Return the end of a sentence with a command for a key that the table has; ``""`` if the table has no rows."""
    row = output.any_row()
    if row is None or any(row[column.name] is None for column in output.own_columns):
        return ""
    words = [f"{column.name}={_as_word(row[column.name], column)}" for column in output.own_columns]
    return f", as in `rewindow why {output.key_words(words)}`"


def _as_word(value: Any, column: Column) -> str:
    """Return a value as users write it. A text in a column of JSON is written without quotes."""
    if column.type == "json" and isinstance(text := json.loads(value), str):
        return text
    return value.hex() if isinstance(value, bytes) else str(value)


def choose_row(
    output: Output, words: Sequence[str], rows: Sequence[Row], at: AskedTime | None, run: str | None
) -> tuple[Sequence[Row], Row]:
    """Return the rows of a key, only those in one window if the user named one, and the row to explain.

    The row to explain is the newest one; with ``run``, the newest one that this run wrote. Raises `NothingFoundError` (1) if
    there is no such row, `UsageError` (2) for an unknown run.
    """
    chosen = None if run is None else find_run(output.state, output.branch, run)
    start_ms = None if at is None else at.start(rows)
    of_window = output.in_window(rows, start_ms)
    key = " ".join(words)
    command = output.key_words(words) if at is None else at.command(at.time_ms)
    ask = f"`rewindow why {command} --missing` says why"
    if not of_window:
        column = output.start_column
        starts = sorted({row[column] for row in rows}) if column else []
        last = f", the last {_MOST_NAMED} of {len(starts):,}" if len(starts) > _MOST_NAMED else ""
        named = ", ".join(instant(start) for start in starts[-_MOST_NAMED:])
        windows = f" (it has windows from {named}{last})" if starts else ""
        where = "" if at is None or start_ms is None else at.where(start_ms)
        raise NothingFoundError(
            "key-row-missing",
            "{table} has no row of the key {key}{where}{hint}: {fix}",
            table=output.table,
            key=key,
            where=where,
            hint=windows,
            fix=ask,
        )
    if run is None:
        return of_window, of_window[-1]
    own = [row for row in of_window if chosen is not None and row["_run"] == chosen.spec.run]
    if not own:
        written = sorted({row["_run"] for row in of_window})
        names = [committed.spec.name for committed in output.state.committed if committed.spec.run in written]
        others = (
            f"has rows of {', '.join(names)}: name one of these" if names else "has rows of runs that are forgotten"
        )
        raise NothingFoundError(
            "run-without-key-row",
            "run {run} wrote no row of the key {key}, which {hint}",
            run=run,
            key=key,
            hint=others,
        )
    return of_window, own[-1]


def null_key(key: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]] | None:
    """Return a key of nulls if the user asked for records without a key; otherwise None.

    A table may have rows with a null key, because some operators, such as some joins, send records without a key.
    """
    return {name: [None] for name in key} if _means_none(key) else None


def without_key(project: OpenProject, output: Output, key: Mapping[str, Sequence[Any]]) -> MissingFacts | None:
    """Return what happened to records without a key, if the user asked for them by an empty key or `null`.

    Returns None for any other key, if a record has exactly this text as its key, or if there is no run yet.
    """
    is_text = any(values[0] is not None for values in key.values())
    if not _means_none(key) or output.branch.head is None or (is_text and is_landed(output, key)):
        return None
    skipped = list(_skipped(output))
    total, name, runs_known = sum(count for _, count in skipped), output.job.name, len(output.branch.runs)
    last = f" in the last {DETAILED_RUNS} of {runs_known:,} runs" if runs_known > DETAILED_RUNS else ""
    if not total:
        headline = ReasonMessage(
            "no-null-key-skipped", "no run of {job} has skipped a record without a key{runs}", job=name, runs=last
        )
        return no_answer(output, Missing.NO_KEY, headline, [_written(output)])
    are, them = ("record without a key was", "it") if total == 1 else ("records without a key were", "them")
    runs = ", ".join(f"{count:,} in run {run}" for run, count in skipped[-_MOST_RUNS:])
    more = f", the last {_MOST_RUNS} of {len(skipped):,} runs" if len(skipped) > _MOST_RUNS else ""
    reasons = [
        ReasonMessage(
            "null-keys-by-run",
            "Where {job} groups, aggregates or joins by key, it skips records without a key: {runs}{more}",
            job=name,
            runs=runs,
            more=more,
        ),
        _how_to_see(project, name),
        _written(output),
    ]
    headline = ReasonMessage(
        "null-keys-skipped",
        "{records} skipped{runs}, so {table} has no row of {them}",
        records=f"{total:,} {are}",
        runs=last,
        table=output.table,
        them=them,
    )
    return no_answer(output, Missing.NO_KEY, headline, reasons)


def _means_none(key: Mapping[str, Sequence[Any]]) -> bool:
    return all(values[0] in _NO_KEY or "null" in values for values in key.values())


def _skipped(output: Output) -> Iterator[tuple[str, int]]:
    """Yield the last runs in which nodes before the output skipped records without a key: their names and numbers of records."""
    nodes = {node.name for node in output.layout.topology.above(output.layout.sink)}
    for run in output.branch.runs[-DETAILED_RUNS:]:
        rows = [row for report in output.tables.reports(run) for row in report.metrics if row["node"] in nodes]
        if count := sum_by_reason(rows, SKIPPED_RECORDS).get("null-key", 0):
            yield run.spec.name, count


def _how_to_see(project: OpenProject, job: str) -> ReasonMessage:
    is_kept = load_job(project.root, job).dropped == "quarantine"
    how = f"See them: `{see_quarantined(job)}`" if is_kept else keep_dropped(job)
    return ReasonMessage("how-to-see-dropped", "{how}", how=how)


def _written(output: Output) -> ReasonMessage:
    columns = " ".join(f"{column.name}=VALUE" for column in output.own_columns)
    return ReasonMessage(
        "how-to-write-key", "A key is written {columns}{example}", columns=columns, example=example(output)
    )
