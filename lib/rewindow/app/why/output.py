"""Find an output table by its name, and the rows of a key in this table."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from rewindow.app.feed_rules import rules_of
from rewindow.app.open_project import OpenProject
from rewindow.app.output_rows import find_outputs, is_quarantine
from rewindow.app.run_references import with_runs
from rewindow.control.health.inputs import FeedRules, Unknown
from rewindow.control.health.phrases import command_words
from rewindow.control.plan.job_state import Branch, JobState
from rewindow.control.plan.spec import MAIN, OUTPUT
from rewindow.control.run import Job, with_clocks_of
from rewindow.engine.worker.provenance.task_replay import Traced
from rewindow.errors import UsageError
from rewindow.streams.nodes import ProcessorNode
from rewindow.streams.serde.schema import Column, has_bounds
from rewindow.streams.settings import TaskConfig
from rewindow.streams.topology import Topology
from rewindow.streams.windows.time import Windows
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
        if of_branch.head is not None:
            job = with_clocks_of(job, of_branch.head.spec.binding)
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

        Each call returns its own copy of the user code, so that replays share no objects.
        """
        return self._through(self.job.code.load_topology(), partition)

    @cached_property
    def layout(self) -> Traced:
        """The shapes of the output's keys and values, and its topics and sub-topologies.

        Only for inspection; to replay, use `traced`.
        """
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
        """The key columns that are not columns of the window."""
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
        """Return the rows of the window that starts at a time. With None, return all rows."""
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
