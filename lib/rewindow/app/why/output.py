"""Find an output table by name, and the rows of a key in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

from rewindow.app.open_project import OpenProject
from rewindow.app.output_rows import find_outputs, is_quarantine
from rewindow.app.run_references import with_runs
from rewindow.app.unfinished import rules_of
from rewindow.control.health.inputs import FeedRules, Unknown
from rewindow.control.plan.job_state import Branch, JobState
from rewindow.control.plan.spec import MAIN, OUTPUT
from rewindow.control.run import Job
from rewindow.engine.worker.provenance.task_replay import Traced
from rewindow.errors import DataError, UsageError
from rewindow.streams.serde.canonical_json import dump_value
from rewindow.streams.serde.coercion import coerce_text, coercer
from rewindow.streams.serde.schema import Column, has_bounds
from rewindow.streams.settings import TaskConfig
from rewindow.streams.topology import Topology
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
    rules: FeedRules | Unknown

    @classmethod
    def find(cls, project: OpenProject, name: str, branch: str) -> Output:
        """Find an output by its table or topic, or by its job if that has one output.

        Raises `UsageError` (2) for any other name, and for a branch without runs except `main`.
        """
        if is_quarantine(name):
            raise UsageError(
                "quarantine-has-reasons",
                "the quarantine has the rows that landings and jobs refused, each with its reason, so "
                "`why` has nothing to add: `rewindow head rewindow.quarantine` shows them. `rewindow why "
                "TABLE KEY --missing`, with a job's output table, says what became of a key's records",
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
        state = tables.state(config.job)
        found = state.branch(branch) if branch == MAIN else with_runs(config.job, state, branch)
        return cls(
            job, topics[0], config.outputs[topics[0]].table, tables, state, found, rules_of(project.root, config.feed)
        )

    def traced(self, partition: int) -> Traced:
        """Return what to replay for the rows of one partition. Its user code shares no objects with another replay."""
        return self._through(self.job.code.load_topology(), partition)

    @cached_property
    def layout(self) -> Traced:
        """The output's shapes, topics and sub-topologies, to look at but not to replay."""
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
        """Whether its keys have windows."""
        return has_bounds(self.layout.shapes[0].names)

    @property
    def own_columns(self) -> tuple[Column, ...]:
        """The columns of the key without the window."""
        return self.key_columns[:-2] if self.is_windowed else self.key_columns

    def any_row(self) -> Row | None:
        """Return a row of the table, to show what its keys look like; None if it has none."""
        spec = self.branch.tables.get(f"{OUTPUT}{self.topic}")
        if spec is None or self.tables.version_of(spec) is None:
            return None
        rows: list[Row] = self.tables.first_rows(spec, 1).to_pylist()
        return rows[0] if rows else None

    def rows(self, key: Mapping[str, Sequence[Any]]) -> list[Row]:
        """Return the rows of a key, in the order in which they were written; none if there is no table yet."""
        spec = self.branch.tables.get(f"{OUTPUT}{self.topic}")
        if spec is None or self.tables.version_of(spec) is None:
            return []
        rows: list[Row] = self.tables.rows_of_key(spec, key).select([one.name for one in spec.columns]).to_pylist()
        return rows


def parse_key(columns: Sequence[Column], words: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Return what the columns of a key may be, given its words: a value, ``COLUMN=VALUE`` pairs, or a JSON object.

    Text in a column of JSON may stand for a text or for any other value. Raises `UsageError` (2) if the words do not name
    each column, and no other, or if a value does not fit its column.
    """
    known = {column.name: column.type for column in columns}
    object_ = _of_json(words[0]) if len(words) == 1 else {}
    given: dict[str, str | None] = {}
    if set(object_) == set(known):
        given = object_
    elif len(words) == 1 and len(known) == 1 and not words[0].startswith(f"{columns[0].name}="):
        given = {columns[0].name: words[0]}
    else:
        for word in words:
            name, equals, value = word.partition("=")
            if not equals:
                raise UsageError(
                    "key-word-without-column",
                    "{word!r} names no column: write COLUMN=VALUE for each of {columns}",
                    word=word,
                    columns=", ".join(known),
                )
            given[name] = value
    if set(given) != set(known):
        raise UsageError(
            "key-columns-differ",
            "the key has the columns {columns}, but {given} was given: name each once",
            columns=", ".join(known),
            given=", ".join(given) or "none",
        )
    return {name: _values(given[name], Column(name, known[name])) for name in known}


def _of_json(text: str) -> dict[str, str | None]:
    """Return the columns of a JSON object as texts, and None for null; nothing for any other text."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        name: value if value is None or isinstance(value, str) else json.dumps(value) for name, value in found.items()
    }


def _values(text: str | None, column: Column) -> Sequence[Any]:
    """Return the values of a column that a text may mean. An empty text and ``null`` are not numbers; None is null."""
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
            "{given!r} is no value of the column {column!r}, which has the type {type}",
            given=text,
            column=column.name,
            type=column.type,
        ) from error


def _canonical(text: str) -> Iterable[str]:
    try:
        return [dump_value(json.loads(text))]
    except ValueError:
        return []
