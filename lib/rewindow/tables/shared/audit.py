"""Check the reports of an attempt against what was due, and add them up. Conservation finds lost and doubled records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branches import JobState
from rewindow.control.plan.spec import Commit, JournalFile, RunSpec, TargetTotal, add_digests, make_commit
from rewindow.errors import InvariantError
from rewindow.streams.record import TopicPartition
from rewindow.streams.serde.meta_columns import PARTITION

INTERNAL = "internal/"
"""How the targets of internal logs begin. Nothing publishes them, so they are counted but not read back."""


def audit_counts(spec: RunSpec, feed: Feed, reports: Sequence[TaskReport]) -> None:
    """Check that each task reported once, and took all that the run's epochs and its upstream tasks gave it.

    Raises `InvariantError` (70): the engine lost or doubled records, and trying again would not help.
    """
    stages = len(spec.binding.topology)
    tasks = [(report.sub_topology, report.partition) for report in reports if 0 <= report.sub_topology < stages]
    due = [(stage, partition) for stage in range(stages) for partition in range(feed.definition.partitions)]
    if sorted(tasks) != due:
        message = f"run {spec.name}: {len(tasks)} tasks reported, due are {len(due)} (stage, partition); nothing counts"
        raise InvariantError(message)
    sent = _sent(reports)
    for report in reports:
        for topic, taken in sorted(report.consumed.items()):
            place = TopicPartition(topic, report.partition)
            wanted = _released(spec, feed, place) if topic in feed.definition.logs else sent.get(place, 0)
            if taken != wanted:
                message = (
                    f"run {spec.name}: the task of {topic}-{report.partition} took {taken} records, due were {wanted}; "
                    "nothing counts"
                )
                raise InvariantError(message)


def totals(reports: Sequence[TaskReport]) -> dict[str, TargetTotal]:
    """Return for each target what the run made for it: rows, files, bytes and one digest of the rows."""
    files: dict[str, list[StagedFile]] = {}
    for report in reports:
        for file in report.files:
            files.setdefault(file.target, []).append(file)
    return {
        target: TargetTotal(
            rows=sum(file.rows for file in made),
            files=len(made),
            bytes=sum(file.bytes for file in made),
            digest=add_digests(file.rows_digest for file in made),
        )
        for target, made in sorted(files.items())
    }


def worth(state: JobState, spec: RunSpec, staged: JournalFile, reports: Sequence[TaskReport]) -> Commit:
    """Return the COMMIT that an attempt is worth whose reports were checked."""
    return make_commit(
        spec,
        parent_chain=state.branch(spec.branch).chain,
        journal=staged,
        targets=totals(reports),
        consumed=consumed(reports),
        held=held(reports),
    )


def consumed(reports: Sequence[TaskReport]) -> dict[str, int]:
    """Return how many records were taken of each topic, over all tasks."""
    taken: dict[str, int] = {}
    for report in reports:
        for topic, records in report.consumed.items():
            taken[topic] = taken.get(topic, 0) + records
    return dict(sorted(taken.items()))


def held(reports: Sequence[TaskReport]) -> dict[str, int]:
    """Return how many records each buffer holds back at the end, over all tasks."""
    kept: dict[str, int] = {}
    for report in reports:
        for store, records in report.state.get("held", {}).items():
            kept[store] = kept.get(store, 0) + records
    return dict(sorted(kept.items()))


def _sent(reports: Sequence[TaskReport]) -> Mapping[TopicPartition, int]:
    """Return the records sent to each partition of the internal logs."""
    sent: dict[TopicPartition, int] = {}
    for report in reports:
        for file in report.files:
            if file.target.startswith(INTERNAL):
                place = TopicPartition(file.target.removeprefix(INTERNAL), int(file.partition_values[PARTITION]))
                sent[place] = sent.get(place, 0) + file.rows
    return sent


def _released(spec: RunSpec, feed: Feed, place: TopicPartition) -> int:
    if not spec.epochs:
        return 0
    return feed.epoch_range(spec.last_epoch, place)[1] - feed.epoch_range(spec.first_epoch, place)[0]
