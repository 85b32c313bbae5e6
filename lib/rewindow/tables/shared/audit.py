"""Check the reports of an attempt's tasks for lost and doubled records, and add up the reports.

`add_up_runs` combines the metrics of several runs by task. It sums counts and totals, takes the lowest minimum and the
highest maximum, and keeps the newest of current values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rewindow.contracts.staged_files import METRICS, SHARED, TaskReport
from rewindow.control.health.phrases import command_words
from rewindow.control.plan.spec import Commit, JournalFile, RunSpec, make_commit, totals
from rewindow.errors import InvariantError
from rewindow.streams.record import TopicPartition
from rewindow.streams.serde.schema import PARTITION
from rewindow.tables.shared.arrow_tables import arrow_schema

if TYPE_CHECKING:
    from rewindow.control.ingest.landings import Feed
    from rewindow.control.plan.job_state import JobState

Rows = npt.NDArray[np.int64]

INTERNAL = "internal/"
"""The prefix of the targets of internal logs. Internal logs are never published, so they are counted but not read back."""
MEASURE = ("sub_topology", "partition", "level", "node", "name", "reason")
_SUMS, _EXTREMA = ("count", "total"), {"minimum": np.minimum, "maximum": np.maximum}
_VALUES = (*_SUMS, *_EXTREMA, "current")
MEASURES = arrow_schema([column for column in METRICS if column.name in {"_run", *MEASURE, *_VALUES}])
"""The columns of the metrics table that `add_up_runs` needs."""


def audit_counts(spec: RunSpec, feed: Feed, reports: Sequence[TaskReport]) -> None:
    """Check that each task reported once, and processed exactly the records of the run's epochs and of its upstream tasks.

    Raises `InvariantError` (70) if not: the engine lost or doubled records. A retry would not help.
    """
    parts = len(spec.binding.topology)
    tasks = [
        (report.sub_topology, report.partition)
        for report in reports
        if 0 <= report.sub_topology < parts and report.partition != SHARED
    ]
    due = [(part, partition) for part in range(parts) for partition in range(feed.definition.partitions)]
    if sorted(tasks) != due:
        raise InvariantError(
            "task-reports-missing",
            "run {run}: {tasks} tasks reported, but {due} were due. Nothing was committed",
            run=spec.name,
            tasks=len(tasks),
            due=len(due),
        )
    sent = _sent(reports)
    everywhere = {node["source"] for part in spec.binding.topology for node in part["nodes"] if _is_global(node)}
    for report in reports:
        for topic, taken in sorted(report.consumed.items()):
            where = TopicPartition(topic, 0 if topic in everywhere else report.partition)
            wanted = feed.records(spec.epochs, where) if topic in feed.definition.logs else sent.get(where, 0)
            if taken != wanted:
                raise InvariantError(
                    "task-records-miscounted",
                    "run {run}: the task of {topic}-{partition} took {taken} records, but {due} were due. Nothing was "
                    "committed",
                    run=spec.name,
                    topic=topic,
                    partition=report.partition,
                    taken=taken,
                    due=wanted,
                )


def _is_global(node: Mapping[str, Any]) -> bool:
    return "source" in node and node.get("is_global", False)


def commit_of(state: JobState, spec: RunSpec, staged: JournalFile, reports: Sequence[TaskReport]) -> Commit:
    """Return the COMMIT of an attempt whose reports were checked."""
    return make_commit(
        spec,
        parent_chain=state.branch(spec.branch).chain,
        journal=staged,
        targets=totals(reports),
        consumed=consumed(reports),
        held=held(reports),
    )


def consumed(reports: Sequence[TaskReport]) -> dict[str, int]:
    """Return how many records of each topic all tasks together processed, by topic."""
    taken: dict[str, int] = {}
    for report in reports:
        for topic, records in report.consumed.items():
            taken[topic] = taken.get(topic, 0) + records
    return dict(sorted(taken.items()))


def held(reports: Sequence[TaskReport]) -> dict[str, int]:
    """Return how many records each store's buffers hold at the end of the run, summed over all tasks, by store."""
    kept: dict[str, int] = {}
    for report in reports:
        for store, records in report.state.get("held", {}).items():
            kept[store] = kept.get(store, 0) + records
    return dict(sorted(kept.items()))


def _sent(reports: Sequence[TaskReport]) -> Mapping[TopicPartition, int]:
    """Return how many records were sent to each partition of the internal logs, by topic and partition."""
    sent: dict[TopicPartition, int] = {}
    for report in reports:
        for file in report.files:
            if file.target.startswith(INTERNAL):
                where = TopicPartition(file.target.removeprefix(INTERNAL), int(file.partition_values[PARTITION]))
                sent[where] = sent.get(where, 0) + file.rows
    return sent


def reported(reports: Iterable[tuple[int, TaskReport]]) -> pa.Table:
    """Return the metrics of reports as rows of the metrics table. ``reports``: pairs of a run id and a report of that run."""
    rows = [
        {"_run": run, "sub_topology": report.sub_topology, "partition": report.partition, **measure}
        for run, report in reports
        for measure in report.metrics
    ]
    return pa.Table.from_pylist(rows, schema=MEASURES)


def add_up_runs(rows: pa.Table) -> list[dict[str, Any]]:
    """Combine metrics of several runs. Return one dictionary (column name to value) per measure and task."""
    # `group_by` and `to_numpy` would load pandas, which takes longer than a short command.
    by_run = np.argsort(np.from_dlpack(rows["_run"].combine_chunks()), kind="stable")
    keys = [rows[name].combine_chunks().dictionary_encode("encode") for name in MEASURE]
    codes = np.zeros(rows.num_rows, np.int64)
    for key in keys:
        codes = codes * len(key.dictionary) + np.from_dlpack(key.indices)
    _, first, groups = np.unique(codes[by_run], return_index=True, return_inverse=True)
    groups, rows_of_groups = np.argsort(np.argsort(first))[groups], by_run[np.sort(first)]
    words = [np.array(key.dictionary.to_pylist(), object)[np.from_dlpack(key.indices)[rows_of_groups]] for key in keys]
    sums = [_add_up(name, rows[name].combine_chunks(), by_run, groups) for name in _VALUES]
    return [dict(zip((*MEASURE, *_VALUES), values, strict=True)) for values in zip(*words, *sums, strict=True)]


def _add_up(name: str, column: pa.Array, by_run: Rows, groups: Rows) -> list[int | None]:
    """Return for each group the sum, minimum, maximum or last of its values, as the column requires.

    A group without values gets None.

    ``by_run``: the positions of the rows, in the order of their runs. ``groups``: the group of each row, in the order of
    ``by_run``.
    """
    is_known = np.from_dlpack(column.is_valid().cast(pa.uint8())).astype(bool)
    values = np.zeros(len(column), np.int64)
    values[is_known] = np.from_dlpack(column.drop_null())
    of, values = groups[is_known[by_run]], values[by_run][is_known[by_run]]
    added = np.zeros(groups.max(initial=-1) + 1, np.int64)
    added[of] = 0 if name in _SUMS else values  # if a group has several values, the last one is kept
    if name != "current":
        _EXTREMA.get(name, np.add).at(added, of, values)
    known = set(of.tolist())
    return [value if group in known else None for group, value in enumerate(added.tolist())]


def not_deterministic(spec: RunSpec, target: str, different: str) -> InvariantError:
    """Return the error of an attempt whose rows differ from those of the attempt that it repeats."""
    return InvariantError(
        "run-not-deterministic",
        "run {run} is not deterministic: {target} differs from what the previous attempt staged, {different}. "
        "Nothing was committed. Find the clock, the random number or the set order in the job's code (`rewindow "
        "verify {job}`). If you changed the code on purpose, run with {run_option}",
        run_option="--replan",
        job=command_words(spec.job, spec.branch),
        run=spec.name,
        target=target,
        different=different,
    )
