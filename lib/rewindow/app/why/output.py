"""Find an output table by its name, and the rows of a key in it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property, partial
from typing import Any

from rewindow.app.feed_rules import rules_of
from rewindow.app.open_project import OpenProject
from rewindow.app.output_rows import find_outputs, is_quarantine
from rewindow.app.run_references import with_runs
from rewindow.contracts.instants import as_argument, instant
from rewindow.control.health.inputs import FeedRules, Unknown
from rewindow.control.health.phrases import command_words
from rewindow.control.plan.job_state import Branch, JobState
from rewindow.control.plan.spec import MAIN, OUTPUT
from rewindow.control.run import Job
from rewindow.engine.worker.provenance.task_replay import Traced
from rewindow.errors import DataError, Lines, ReasonMessage, UsageError
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.record import Window
from rewindow.streams.serde.canonical_json import dump_value
from rewindow.streams.serde.coercion import coerce_text, coercer
from rewindow.streams.serde.schema import Column, has_bounds
from rewindow.streams.settings import TaskConfig
from rewindow.streams.topology import Topology
from rewindow.streams.windows.session_sliding import SessionWindows, SlidingWindows
from rewindow.streams.windows.time import GridWindows, Windows
from rewindow.tables.shared.paths import safe_name
from rewindow.tables.shared.warehouse import Warehouse

Row = dict[str, Any]


@dataclass(frozen=True)
class Output:
    """An output of a job on a branch, with the job's code."""

    job: Job
    topic: str
    table: str
    tables: Warehouse
    state: JobState
    branch: Branch
    read_rules: Callable[[], FeedRules | Unknown]

    @classmethod
    def find(cls, project: OpenProject, name: str, branch: str) -> Output:
        """Find an output by its table or topic, or by its job if the job has only one output.

        Raises `UsageError` (2) for any other name, and for a branch without runs except `main`.
        """
        if is_quarantine(name):
            raise UsageError(
                "quarantine-has-reasons",
                "the quarantine has the rows that landings and jobs refused, each with its reason, so `why` has nothing to"
                " add: `rewindow head rewindow.quarantine` shows them. `rewindow why TABLE KEY --missing`, with a job's "
                "output table, says what happened to the records of a key",
            )
        config, topics = find_outputs(project, name)
        if len(topics) != 1:
            listed = ", ".join(config.outputs[topic].table for topic in topics)
            raise UsageError(
                "output-name-missing",
                "job {job!r} has {count} outputs: name the table, one of {tables}",
                job=name,
                count=len(topics),
                tables=listed,
            )
        tables = project.tables
        job = project.bind(config.job, safe_name(branch, "branch"))
        state = project.state(config.job)
        of_branch = state.branch(branch) if branch == MAIN else with_runs(config.job, state, branch)
        return cls(
            job,
            topics[0],
            config.outputs[topics[0]].table,
            tables,
            state,
            of_branch,
            partial(rules_of, project.root, config.feed),
        )

    def traced(self, partition: int) -> Traced:
        """Return the part of the topology to replay for the rows of one partition.

        Each result has its own copy of the user code, so that replays share no objects.
        """
        return self._through(self.job.code.load_topology(), partition)

    @cached_property
    def layout(self) -> Traced:
        """The output's key and value shapes, topics and sub-topologies. They must not be replayed."""
        return self._through(self.job.code.topology, 0)

    def _through(self, topology: Topology, partition: int) -> Traced:
        code = self.job.code
        config = TaskConfig(self.job.name, code.semantics, code.settings, topology.watermark_lags())
        return Traced(topology, code.load_logs(), config, self.job.feed.definition.partitions, self.topic, partition)

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """The columns of the table's key."""
        return self.layout.shapes[0].columns

    @property
    def is_windowed(self) -> bool:
        """Whether the keys of the output have windows."""
        return has_bounds(self.layout.shapes[0].names)

    @property
    def own_columns(self) -> tuple[Column, ...]:
        """The columns of the key, without those of the window."""
        return self.key_columns[:-2] if self.is_windowed else self.key_columns

    @property
    def start_column(self) -> str | None:
        """The column with the start of the key's window; None for keys without windows."""
        return self.key_columns[-2].name if self.is_windowed else None

    @property
    def windowed_node(self) -> ProcessorNode | None:
        """The node that makes the windows of the output's keys; None if no node declares windows."""
        nodes = (node for node in self.layout.topology.above(self.layout.sink) if isinstance(node, ProcessorNode))
        return next((node for node in nodes if isinstance(getattr(node.supplier, "windows", None), Windows)), None)

    @property
    def windows(self) -> Windows | None:
        """The windows of the output's keys, as the code declares them; None if no node declares windows."""
        node = self.windowed_node
        return None if node is None else getattr(node.supplier, "windows", None)

    def key_words(self, words: Sequence[str]) -> str:
        """Return the words of a command that name the output's table, its branch and a key."""
        return f"{command_words(self.table, self.branch.name)} {shlex.join(words)}"

    def in_window(self, rows: Sequence[Row], start_ms: int | None) -> Sequence[Row]:
        """Return the rows of the window that starts at a time; all rows for None."""
        return rows if start_ms is None else [row for row in rows if row[self.start_column or ""] == start_ms]

    def any_row(self) -> Row | None:
        """Return a row of the table as an example of its keys; None if the table has no rows."""
        spec = self.branch.tables.get(f"{OUTPUT}{self.topic}")
        if spec is None or self.tables.version_of(spec) is None:
            return None
        rows: list[Row] = self.tables.first_rows(spec, 1).to_pylist()
        return rows[0] if rows else None

    def rows(self, key: Mapping[str, Sequence[Any]]) -> list[Row]:
        """Return the rows of a key, in the order in which they were written; an empty list if the table does not exist yet."""
        spec = self.branch.tables.get(f"{OUTPUT}{self.topic}")
        if spec is None or self.tables.version_of(spec) is None:
            return []
        rows: list[Row] = (
            self.tables.rows_of_key(spec, key).select([column.name for column in spec.columns]).to_pylist()
        )
        return rows


def parse_key(columns: Sequence[Column], words: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Return the possible values of each key column. The words are a value, ``COLUMN=VALUE`` pairs, or a JSON object.

    In a column of JSON, a text may mean itself or the JSON value that it spells. Raises `UsageError` (2) if the words do not
    name exactly the columns of the key, or if a value does not fit its column.
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
    """Return the columns of a JSON object, as texts, and None for null; an empty mapping for any other text."""
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
    """Return the values of a column that a text may mean. None is null.

    In a column that has neither text nor JSON, "" and ``null`` are null, too.
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


_MOST_NAMED = 5
"""If several windows contain a time, a message lists at most this many."""


@dataclass(frozen=True)
class AskedTime:
    """The time whose window the user requested. ``words``: the words of the key on the command line."""

    output: Output
    words: Sequence[str]
    time_ms: int
    is_missing: bool = False

    def start(self, rows: Iterable[Row]) -> int:
        """Return the start of the window that contains the time, given the key's rows.

        Windows that are not on a grid are known only from rows. If no row's window contains the time, the time itself is
        returned. Raises `UsageError` (2) if no window or several windows can contain the time, or if the table has no windows.
        """
        if not self.output.is_windowed:
            raise UsageError("table-without-windows", "{table} has no windows: omit --window", table=self.output.table)
        windows = self.output.windows
        first, last = (column.name for column in self.output.key_columns[-2:])
        bounds = list(dict.fromkeys((row[first], row[last]) for row in rows))
        if any(start == self.time_ms for start, _ in bounds):
            return self.time_ms
        if isinstance(windows, GridWindows):
            return self._of_grid(windows, {start for start, _ in bounds})
        is_closed = isinstance(windows, SessionWindows | SlidingWindows)  # these windows contain their ends
        around = [start for start, end in bounds if start <= self.time_ms < end + is_closed]
        if isinstance(windows, SessionWindows):
            around = around[-1:]  # a session was written again each time it grew: the last row has its bounds
        return self.only(around)

    def only(self, starts: Iterable[int]) -> int:
        """Return the requested start: the only one of ``starts``, or the time itself if ``starts`` is empty or contains it.

        Raises `UsageError` (2) if there are several starts and the time is not one of them.
        """
        known_starts = sorted(set(starts))
        if len(known_starts) > 1 and self.time_ms not in known_starts:
            raise self._several(known_starts)
        return known_starts[0] if len(known_starts) == 1 else self.time_ms

    def where(self, start_ms: int) -> str:
        """Return the end of a sentence that names the requested window."""
        if not isinstance(self.output.windows, GridWindows):
            return f" in a window that contains {instant(self.time_ms)}"
        which = "" if start_ms == self.time_ms else f", which contains {instant(self.time_ms)}"
        return f" in the window from {instant(start_ms)}{which}"

    def command(self, start_ms: int) -> str:
        """Return the words of the command that requests the window with this start."""
        return f"{self.output.key_words(self.words)} --window {as_argument(start_ms)}"

    def _of_grid(self, windows: GridWindows, known: set[int]) -> int:
        starts = windows.starts(self.time_ms) if self.time_ms >= 0 else ()
        if not starts:
            if self.time_ms < 0:
                raise UsageError(
                    "window-before-1970",
                    "--window: no window of {table} contains a time before 1970",
                    table=self.output.table,
                )
            raise UsageError(
                "window-not-found",
                "--window {time}: no window of {table} contains this time",
                time=as_argument(self.time_ms),
                table=self.output.table,
            )
        if len(starts) == 1 or self.time_ms in starts:
            return starts[0] if len(starts) == 1 else self.time_ms
        raise self._several([start for start in starts if start in known] or starts, len(starts))

    def _several(self, starts: Sequence[int], count: int = 0) -> UsageError:
        """Return the error for a time that ``count`` windows contain. ``starts`` are the starts of the windows to list."""
        more = " --missing" if self.is_missing else ""
        listed = Lines(["", *(f"  rewindow why {self.command(start)}{more}" for start in starts[-_MOST_NAMED:])])
        named = min(len(starts), _MOST_NAMED)
        which = "" if named == (count or len(starts)) else f", such as these {named}" if named > 1 else ", such as"
        return UsageError(
            "window-ambiguous",
            "{given} is not the start of a window of {table}, and {count} windows contain it: ask "
            "for one of them by its start{which}:{listed}",
            given=instant(self.time_ms),
            table=self.output.table,
            count=count or len(starts),
            which=which,
            listed=listed,
        )


def told_sessions(made: Sequence[Window], making: str, time_ms: int) -> ReasonMessage:
    """Return a sentence that lists the sessions nearest to a time. ``making`` says which records make them, in words."""
    near = sorted(made, key=lambda one: max(one.start_ms - time_ms, time_ms - one.end_ms))[:_MOST_NAMED]
    named = ", ".join(f"{instant(session.start_ms)} to {instant(session.end_ms)}" for session in sorted(near))
    more = "" if len(near) == len(made) else f" {len(made):,}, the nearest ones"
    which, are = ("session", "is") if len(made) == 1 else ("sessions", f"are{more}")
    return ReasonMessage(
        "key-sessions", "The {which} that {making} {are} {named}", which=which, making=making, are=are, named=named
    )


def sessions(times: Iterable[int], gap_ms: int) -> list[Window]:
    """Return the sessions that records with these times make, oldest first."""
    made: list[Window] = []
    for time in sorted(times):
        if made and time - made[-1].end_ms <= gap_ms:
            made[-1] = Window(made[-1].start_ms, time, is_session=True)
        else:
            made.append(Window(time, time, is_session=True))
    return made
