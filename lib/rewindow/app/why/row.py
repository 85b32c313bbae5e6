"""Explain one row of an output: replay its task, name the records from which it was made, and say when and why it was sent."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewindow.app.describe_job import described_drift
from rewindow.app.why.answer_facts import (
    LateFacts,
    PunctuationFacts,
    RecordFacts,
    RowFacts,
    RunFacts,
    SentFacts,
    json_row,
    json_rows,
)
from rewindow.app.why.history import Candidates, History
from rewindow.app.why.key_records import Outcomes, dropped_by_runs, missed, not_looked_for, quarantined
from rewindow.app.why.output import Output, Row
from rewindow.control.health.phrases import command_words
from rewindow.control.plan.job_diff import differences_besides_tables, removed_suppresses
from rewindow.control.plan.job_state import CommittedRun
from rewindow.control.plan.spec import MAIN, OUTPUT, JobBinding, run_version
from rewindow.control.plan.zone_clocks import clock_changes
from rewindow.control.run import with_clocks_of
from rewindow.engine.worker.provenance.behind import Behind, Wanted, find
from rewindow.engine.worker.provenance.extent import extents, own_key
from rewindow.engine.worker.provenance.origins import Cause
from rewindow.engine.worker.provenance.task_replay import Drop, Traced
from rewindow.engine.worker.worker_errors import as_in_a_worker
from rewindow.errors import CheckpointError, Lines, ReasonMessage, RewindowError, StorageError
from rewindow.streams.record import TopicPartition, Windowed, known_time
from rewindow.streams.windows.session_sliding import SlidingWindows

META = ("_epoch", "_partition", "_offset", "_run")
MOST_ROWS = 20
"""The maximum number of rows of a key that are listed, newest first."""


def explain_row(output: Output, rows: Sequence[Row], row: Row, asked_ms: int | None = None) -> RowFacts:
    """Explain a row of an output. ``rows`` are all rows of its key, or those in the window that contains ``asked_ms``.

    Raises `SourceError` (66) if the feed lacks landings of the row's run. If a replay does not give the row, raises
    `StorageError` (74) if the table was altered, and otherwise `CheckpointError` (76), because the present code does not give
    it.
    """
    run = output.state.find_run(row["_run"])
    if run is None:
        raise CheckpointError(
            "row-run-not-in-ledger",
            "the row's run {run} is not in the ledger of {job}: restore the table, `rewindow republish {of}`",
            run=row["_run"],
            job=output.job.name,
            of=command_words(output.job.name, output.branch.name),
        )
    output = replace(output, job=with_clocks_of(output.job, run.spec.binding))
    head = output.branch.head
    past = History(output, head if head and run in output.state.chain_to(head.spec.run) else run)
    past.check()
    traced = output.traced(row["_partition"])
    key = _key_of(traced, row)
    candidates = candidates_of(past, traced, key)
    with as_in_a_worker():
        behind, outcomes = _behind(past, traced, key, row, rows, candidates)
    if behind is None:
        raise not_given(output, run)
    changed = differences_besides_tables(run.spec.binding, output.job.binding)
    facts = RecordLookup(past)
    made = {(cause.topic, cause.partition, cause.offset) for cause in behind.records}
    used = made | {(cause.topic, cause.partition, cause.offset) for cause in behind.clocks}
    window = key.window if key.__class__ is Windowed else None
    late = [] if window is None else facts.late(missed(output, outcomes, window, made), candidates)
    dropped = {(one.record.topic, one.record.partition, one.record.offset) for one in late}
    shown = [json_row(one) for one in reversed(rows)]
    return RowFacts(
        table=output.table,
        job=output.job.name,
        branch=output.branch.name,
        asked_ms=asked_ms,
        row=json_row(row),
        rows=shown[:MOST_ROWS],
        row_count=len(rows),
        run=_run_facts(run),
        sent=facts.sent(behind),
        records=facts.records(behind.records),
        clock_records=facts.records(behind.clocks),
        punctuations=[facts.punctuation(punctuation) for punctuation in behind.punctuations],
        late=late,
        unused=[]
        if window is None or window.is_session
        else facts.unused(candidates, used | dropped | outcomes.all_in(window)),
        is_reproduced=behind.is_checked,
        is_exact=behind.is_exact and behind.is_checked,
        notes=[*_notes(past, traced, run, key, changed), *quarantined(past, own_key(key))],
    )


def _key_of(traced: Traced, row: Mapping[str, Any]) -> Any:
    shape = traced.shapes[0]
    return shape.decode(tuple(row[name] for name in shape.names))


def _times(output: Output, key: Any) -> tuple[int, int] | None:
    """Return the first and last time that records of a windowed key may have; None for a key without a window."""
    if key.__class__ is not Windowed:
        return None
    start_ms, end_ms, is_session = key.window
    return start_ms, end_ms if is_session or isinstance(output.windows, SlidingWindows) else end_ms - 1


def candidates_of(past: History, traced: Traced, key: Any) -> Candidates:
    """Return the records of a windowed key whose times are in its window. If the logs cannot be searched, return none.

    For a session, records near it are included, too, because they would have extended the session.
    """
    times = _times(past.output, key)
    if times is None or not_looked_for(past.output) is not None:
        return {}
    if key.window.is_session:
        own = traced.leads_to_output()
        after = [timed.final_after_ms or 0 for timed in past.timed if timed.node in own and not timed.is_join]
        around = max([*after, getattr(past.output.windows, "gap_ms", 0)])
        times = max(times[0] - around, 0), times[1] + around
    partition = traced.partition
    topics = [source.topic for source in traced.part.sources if not source.is_internal]
    return {
        (topic, partition): dict(
            past.records.of_key(topic, partition, own_key(key), (0, past.end(topic, partition)), times)
        )
        for topic in topics
    }


def _behind(
    past: History, traced: Traced, key: Any, row: Row, rows: Sequence[Row], candidates: Candidates
) -> tuple[Behind | None, Outcomes]:
    columns = {name: value for name, value in row.items() if name not in META}
    wanted = Wanted(columns, row["_epoch"])
    same = [other for other in rows if (other["_epoch"], other["_partition"]) == (row["_epoch"], row["_partition"])]
    earlier = [
        other
        for other in same
        if other["_offset"] < row["_offset"] and wanted.is_like({name: other[name] for name in columns})
    ]
    wanted = replace(wanted, equal_before=len(earlier))
    for extent in extents(traced, key, row["_timestamp"]):
        outcomes = Outcomes.following(past.output, candidates)
        behind = find(
            traced,
            past.within(extent, own_key(key), traced.partition, row["_epoch"], candidates),
            lambda search, extent=extent: past.reading(search, extent, own_key(key), candidates),  # type: ignore[misc]
            past.records,
            wanted,
            outcomes.drops.append,
            outcomes.wrote,
        )
        if behind is not None:
            return behind, outcomes
    return None, Outcomes()


def _run_facts(run: CommittedRun) -> RunFacts:
    spec = run.spec
    return RunFacts(
        spec.name,
        spec.run,
        spec.input.first,
        spec.input.last,
        run.recorded_at,
        run_version(spec.binding),
        spec.binding.fingerprint,
        spec.final,
    )


def _notes(
    past: History, traced: Traced, run: CommittedRun, key: Any, changed: Sequence[str]
) -> Iterator[ReasonMessage]:
    if changed:
        yield ReasonMessage(
            "code-changed-same-row",
            "The job has changed since run {run}; the code that there is now gives the same row",
            run=run.spec.name,
        )
    if (because := not_looked_for(past.output)) is not None:
        yield ReasonMessage(
            "drops-only-in-quarantine",
            "{because}, so dropped records are looked for in the quarantine only (`dropped: quarantine`)",
            because=because,
        )
        yield from dropped_by_runs(past, own_key(key), _times(past.output, key))
    if any(part.global_stores for part, _ in traced.tasks()):
        yield ReasonMessage(
            "global-records-read-by-key",
            "A global table is read: its records are named only if they were read under a key",
        )


class RecordLookup:
    """Looks records up in the logs, with the landings that added them."""

    def __init__(self, past: History) -> None:
        self._past = past
        self._feed = past.output.job.feed
        self._ends: dict[TopicPartition, tuple[list[int], list[int]]] = {}

    def records(self, causes: Sequence[Cause]) -> list[RecordFacts]:
        """Return the facts of the records in ``causes``, in the same order."""
        columns: dict[tuple[str, int, int], Mapping[str, Any]] = {}
        for topic, partition in dict.fromkeys((cause.topic or "", cause.partition) for cause in causes):
            own = sorted({cause.offset for cause in causes if (cause.topic, cause.partition) == (topic, partition)})
            shapes, rows = self._past.records.shapes[topic], list(self._past.records.at(topic, partition, own))
            names = (*shapes[0].names, *shapes[1].names)
            known = [
                dict(zip(names, (*shapes[0].encode(row.key), *shapes[1].encode(row.value)), strict=True))
                for row in rows
            ]
            columns |= {
                (topic, partition, row.offset): shown for row, shown in zip(rows, json_rows(known), strict=True)
            }
        return [self._record(cause, columns[cause.topic or "", cause.partition, cause.offset]) for cause in causes]

    def sent(self, behind: Behind) -> SentFacts:
        """Return the event at which a row was sent."""
        own = behind.sent
        watermark = next((epoch.watermark_ms for epoch in self._past.epochs if epoch.number == own.epoch), -1)
        return SentFacts(
            epoch=own.epoch,
            watermark_ms=known_time(watermark),
            record=next(iter(self.records(behind.senders[-1:])), None),
            punctuation=self.punctuation(own) if own.node is not None else None,
            is_held=behind.is_released,
        )

    def punctuation(self, cause: Cause) -> PunctuationFacts:
        """Return the facts of a punctuation."""
        return PunctuationFacts(cause.node or "", cause.due_ms, cause.epoch)

    def late(self, drops: Iterable[Drop], candidates: Candidates) -> list[LateFacts]:
        """Return the dropped records that are candidates. A record that several nodes dropped is returned once."""
        own: dict[Cause, Drop] = {}
        for drop in drops:
            topic, partition, offset = drop.dropped.at
            if topic is not None and offset in candidates.get((topic, partition), {}):
                cause = Cause(0, partition, drop.epoch, topic, offset, candidates[topic, partition][offset])
                own.setdefault(cause, drop)
        return [
            LateFacts(record, drop.dropped.node, drop.dropped.reason, drop.behind_ms)
            for drop, record in zip(own.values(), self.records([*own]), strict=True)
        ]

    def unused(self, candidates: Candidates, used: set[tuple[str | None, int, int]]) -> list[RecordFacts]:
        """Return the candidates that neither contributed nor were dropped. A condition or function of the job left them out."""
        causes = [
            Cause(0, partition, self._past.epoch_of(topic, partition, offset), topic, offset, timestamp)
            for (topic, partition), known in candidates.items()
            for offset, timestamp in known.items()
            if (topic, partition, offset) not in used
        ]
        return self.records(causes)

    def _record(self, cause: Cause, columns: Mapping[str, Any]) -> RecordFacts:
        topic = cause.topic or ""
        landing = self._landing_of(topic, cause.partition, cause.offset)
        return RecordFacts(topic, cause.partition, cause.offset, cause.timestamp, landing, cause.epoch, columns)

    def _landing_of(self, topic: str, partition: int, offset: int) -> int | None:
        where = TopicPartition(topic, partition)
        if where not in self._ends:
            landings = [landing for landing in self._feed.landings if where in landing.ranges]
            self._ends[where] = (
                [landing.ranges[where].end for landing in landings],
                [landed.number for landed in landings],
            )
        ends, numbers = self._ends[where]
        at = bisect_right(ends, offset)
        return numbers[at] if at < len(ends) else None


def check_not_altered(output: Output) -> None:
    """Raise `StorageError` (74) if another program changed rows of the table. Its rows may then not be those that runs wrote.

    Files are read only if the table has files that no run staged, for example after an UPDATE or OPTIMIZE.
    """
    spec = output.branch.tables.get(f"{OUTPUT}{output.topic}")
    if spec is None or not output.tables.has_foreign_rows(spec):
        return
    for sentence in _altered(output):
        raise StorageError("why-table-altered", "{reason}", reason=sentence)


def not_given(output: Output, run: CommittedRun) -> RewindowError:
    """Return the error for a row that a replay did not give.

    It is a `StorageError` (74) if the table was altered, else a `CheckpointError` (76).
    """
    name = run.spec.name
    for sentence in _altered(output):
        return StorageError(
            "row-altered-since-published",
            "a replay of run {run} does not give this row, and {reason}",
            run=name,
            reason=sentence,
        )
    if changed := _changes(run.spec.binding, output.job.binding):
        listed = Lines(f"  - {line}" for line in changed)
        return CheckpointError(
            "row-of-other-code",
            "run {run} wrote this row with other code, and the present code does not give it:\n{changes}\nCheck out the "
            "version that wrote the row, then ask again",
            run=name,
            changes=listed,
        )
    job, branch = output.job.name, output.branch.name
    if (other := _other_code(output, run)) is not None:
        earlier, changed = other
        promotes = f", then `rewindow promote {job} NAME`" if branch == MAIN else ""
        return CheckpointError(
            "row-of-two-versions",
            "run {run} made this row from state that run {earlier} had left with other code, so no version gives it alone:\n"
            "{changes}\nTo get rows of one version, recompute them: `rewindow backfill {job} --from 1 --branch NAME`{promotes}",
            run=name,
            earlier=earlier,
            changes=Lines(f"  - {line}" for line in changed),
            job=job,
            promotes=promotes,
        )
    return CheckpointError(
        "row-not-replayed",
        "a replay of run {run} and the runs before it does not give this row, so the code is not deterministic. Find the cause: "
        "`rewindow verify {job}`",
        run=name,
        job=command_words(job, branch),
    )


def _altered(output: Output) -> Iterator[str]:
    """Yield how the table differs from what was published, with the command that repairs it; nothing if it is equal."""
    job, branch = output.job.name, output.branch.name
    for sentence in described_drift(output.tables, job, output.state, branch, f"{OUTPUT}{output.topic}"):
        yield f"{sentence}. Publish it again, then ask again: `rewindow republish {command_words(job, branch)}`"


def _other_code(output: Output, run: CommittedRun) -> tuple[str, list[str]] | None:
    """Return the last earlier run with other code than ``run``, and how the code of ``run`` differs; None if there is none."""
    for earlier in reversed(output.state.chain_to(run.spec.run)[:-1]):
        clocks = clock_changes(earlier.spec.binding, run.spec.binding, earlier.commit.zone_ends)
        if changed := [*_changes(earlier.spec.binding, run.spec.binding), *clocks]:
            return earlier.spec.name, changed
    return None


def _changes(before: JobBinding, now: JobBinding) -> list[str]:
    """Return the differences between two bindings that may change a row.

    They include differences in suppresses, even those with which a run may resume.
    """
    changed = [
        *differences_besides_tables(before, now),
        *(f"suppress {name} is removed" for name in removed_suppresses(before, now)),
        *(f"suppress {name} is new" for name in removed_suppresses(now, before)),
    ]
    if not changed and before.fingerprint != now.fingerprint:
        return ["a suppress was enabled or disabled"]
    return changed
