"""The figures of a report: what the runs did, what changed since the previous run, what a promotion replaced, and the cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import StatisticsError, correlation, linear_regression, median
from typing import Any

from rewindow.control.health.inputs import Inputs, StepTimes, Unknown, records_of, rows_of
from rewindow.control.health.job_health import JobHealth
from rewindow.control.health.late_and_dropped_records import count_drops, dropped_in
from rewindow.control.plan.job_diff import differences_besides_tables
from rewindow.control.plan.job_state import CommittedRun, Publication
from rewindow.control.plan.spec import CHANGELOG, OUTPUT
from rewindow.report.report_facts import (
    Change,
    Changes,
    Clocks,
    Cost,
    Progress,
    Replaced,
    RunFigures,
    Schedule,
    StepCost,
    StoreSize,
)
from rewindow.streams.metrics import NODE, PUNCTUATE, SIMULATED_TIME
from rewindow.streams.record import UNKNOWN, known_time
from rewindow.streams.serde.schema import PARTITION

_STREAM, _WALL = "STREAM_TIME", "WALL_CLOCK_TIME"
_RUNS = 200
"""The forecast uses at most this many of the last runs."""
STEPPED_RUNS = 24
"""The steps of at most this many of the last runs are timed, because each run takes two reads."""
_ENOUGH = 3
"""The minimum number of runs for a forecast."""
_CLEAR = 0.8
"""The minimum correlation of records and seconds for a forecast. Below it, other things decided how long the runs took."""
STEPS = ("execute", "stage", "audit and commit", "publish")

_Timed = list[tuple[int, float]]
"""The pair (number of records, seconds) of each run."""
_MOST_PUBLICATIONS = 1000
"""At most this many of the last publications are searched for a promotion."""


def progress(inputs: Inputs, health: JobHealth) -> Progress:
    """Return how far the last run has processed the feed, and what waits."""
    head = inputs.head
    return Progress(
        runs=len(inputs.runs),
        first_epoch=inputs.runs[0].spec.input.first,
        last_epoch=head.spec.input.last,
        records=sum(records_of(run) for run in inputs.runs),
        rows=rows_of(inputs.runs).total(),
        watermark_ms=known_time(head.commit.watermark_ms),
        committed_at_ms=known_time(head.recorded_at),
        is_sealed=head.spec.final,
        waiting_landings=len(health.waiting),
        waiting_records=health.waiting_records,
        landed_through_ms=health.landed_through_ms,
        slowest=() if isinstance(health.slowest, Unknown) else health.slowest,
        held=health.held,
        lagging={} if isinstance(health.lagging, Unknown) else dict(health.lagging),
    )


def run_figures(inputs: Inputs) -> Iterator[RunFigures]:
    """Yield the figures of each selected run."""
    code: Mapping[str, str] | None = None
    for run in inputs.runs:
        span, now = run.spec.input, run.spec.binding.code
        yield RunFigures(
            run=run.spec.name,
            first_epoch=span.first,
            last_epoch=span.last,
            records=records_of(run),
            rows=rows_of([run]).total(),
            watermark_ms=known_time(run.commit.watermark_ms),
            committed_at_ms=known_time(run.recorded_at),
            seconds=inputs.seconds_of(run),
            is_final=run.spec.final,
            changed_code=bool(code) and code != now,
            dropped=dropped_in(inputs, run),
        )
        code = now


def clocks(inputs: Inputs) -> list[Clocks]:
    """Return clocks for each run whose task reports are known: those of the task that is furthest behind after the run."""
    clocks_of_tasks = []
    for run in inputs.runs:
        reports = inputs.known_reports.get(run.spec.run)
        if reports is None:
            continue
        states = [report.state for report in reports if report.state]
        rows = [row for report in reports for row in report.metrics if row["name"] == PUNCTUATE]
        clocks_of_tasks.append(
            Clocks(
                run=run.spec.name,
                committed_at_ms=known_time(run.recorded_at),
                stream_time_ms=_least(state["stream_time_ms"] for state in states),
                wall_clock_ms=_least(state["wall_clock_ms"] for state in states),
                stream_calls=sum(row["total"] for row in rows if row["reason"] == _STREAM),
                wall_calls=sum(row["total"] for row in rows if row["reason"] == _WALL),
                simulated_ms=max(
                    (row["total"] for report in reports for row in report.metrics if row["name"] == SIMULATED_TIME),
                    default=0,
                ),
            )
        )
    return clocks_of_tasks


def schedules(inputs: Inputs) -> list[Schedule]:
    """Return the schedules after the last run, by node, clock and interval, with the number of calls in the selected runs."""
    grouped: dict[tuple[str, str, int], list[int | None]] = {}
    for state in inputs.known_tasks.values():
        for schedule in state["schedules"]:
            grouped.setdefault((schedule["node"], schedule["type"], schedule["interval_ms"]), []).append(
                schedule["due_ms"]
            )
    calls: dict[tuple[str, str], int] = {}
    for row in inputs.metrics:
        if row["name"] == PUNCTUATE and row["level"] == NODE:
            calls[row["node"], row["reason"]] = calls.get((row["node"], row["reason"]), 0) + row["total"]
    return [
        Schedule(node, clock, every, min((due for due in dues if due is not None), default=None), len(dues), total)
        for (node, clock, every), dues in sorted(grouped.items())
        for total in [calls.get((node, clock), 0)]
    ]


def store_sizes(inputs: Inputs) -> list[StoreSize]:
    """Return the size of each store after the last run, and how much the selected runs wrote to its changelog."""
    kinds = {store["name"]: store["kind"] for part in inputs.head.spec.binding.topology for store in part["stores"]}
    sizes = []
    for store in sorted(inputs.head.spec.binding.stores):
        totals = [(run, run.commit.targets.get(f"{CHANGELOG}{store}")) for run in inputs.runs]
        written = [(run, total) for run, total in totals if total is not None and total.rows]
        columns = inputs.stores.get(store)
        sizes.append(
            StoreSize(
                store=store,
                kind=kinds.get(store, ""),
                keys=None if columns is None else len(columns.get(PARTITION, ())),
                rows=sum(total.rows for _, total in written),
                bytes=sum(total.bytes for _, total in written),
                last_run=written[-1][0].spec.name if written else None,
            )
        )
    return sizes


def _least(times: Any) -> int | None:
    """Return the earliest of the known times; None if no time is known."""
    return min((time for time in times if time != UNKNOWN), default=None)


def changes(inputs: Inputs) -> Changes:
    """Return how the last run differs from the run before it."""
    head, before = inputs.head, inputs.before
    if before is None:
        return Changes(None, (), head.spec.accepted, ())
    lines = [*differences_besides_tables(before.spec.binding, head.spec.binding), *_versions(before, head)]
    return Changes(before.spec.name, lines, head.spec.accepted, list(_changed_figures(inputs, before)))


def _versions(before: CommittedRun, now: CommittedRun) -> Iterator[str]:
    old, new = before.spec.attempt.versions, now.spec.attempt.versions
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield f"{name}: {old.get(name, 'none')} -> {new.get(name, 'none')}"
    if before.spec.input.generation != now.spec.input.generation:
        yield f"generation of the feed: {before.spec.input.generation} -> {now.spec.input.generation}"


def _changed_figures(inputs: Inputs, before: CommittedRun) -> Iterator[Change]:
    now = inputs.head
    yield Change("records", records_of(before), records_of(now))
    yield Change("rows added to outputs", rows_of([before]).total(), rows_of([now]).total())
    reports = inputs.known_reports.get(before.spec.run) or inputs.before_reports
    old, new = count_drops(reports), count_drops(inputs.known_reports.get(now.spec.run, ()))
    for kind in new:
        if old[kind] or new[kind]:
            yield Change(f"{kind} records", old[kind], new[kind])
    yield Change("changelog rows", before.commit.changelog_rows, now.commit.changelog_rows)
    yield Change(
        "results that wait in suppress buffers", sum(before.commit.held.values()), sum(now.commit.held.values())
    )
    yield Change("seconds from plan to commit", inputs.seconds_of(before), inputs.seconds_of(now))


def replaced(inputs: Inputs) -> Replaced | None:
    """Return what the last promotion replaced; None if there is no promotion, or none of its runs is in the report."""
    promotion = _last_promotion(inputs)
    if promotion is None or not {run.spec.run for run in promotion.adds} & {run.spec.run for run in inputs.runs}:
        return None
    old, new = promotion.removes[-1], promotion.adds[-1]
    targets = {target for run in (old, new) for target in run.spec.binding.tables if target.startswith(OUTPUT)}
    outputs = sorted(target.removeprefix(OUTPUT) for target in targets)
    rows_before, rows_now = rows_of(promotion.removes), rows_of(promotion.adds)
    return Replaced(
        before=_named(promotion.removes),
        now=_named(promotion.adds),
        lines=differences_besides_tables(old.spec.binding, new.spec.binding),
        rows=[Change(output, rows_before[output], rows_now[output]) for output in outputs],
    )


def _last_promotion(inputs: Inputs) -> Publication | None:
    publications = inputs.branch.publications
    for index in range(len(publications) - 1, max(len(publications) - _MOST_PUBLICATIONS, 0) - 1, -1):
        publication = publications[index]
        if publication.adds and publication.removes:
            return publication
    return None


def _named(runs: Sequence[CommittedRun]) -> str:
    first, last = runs[0].spec.name, runs[-1].spec.name
    return first if first == last else f"{first} to {last}"


def cost(inputs: Inputs, waiting_records: int) -> Cost:
    """Return the time of the selected runs from plan to commit, and a forecast for the records that wait."""
    timed = [(records_of(run), seconds) for run in inputs.runs if (seconds := inputs.seconds_of(run)) is not None]
    records, seconds = sum(one for one, _ in timed), sum(one for _, one in timed)
    typical = median([one for _, one in timed]) if timed else 0.0
    steps = list(_steps(inputs, waiting_records))
    line = _line(timed[-_RUNS:])
    if line is None:
        return Cost(len(timed), seconds, records, typical, None, None, None, None, steps)
    fixed, each = line
    every = sum(records_of(run) for run in inputs.branch.runs) + waiting_records
    waiting = fixed + each * waiting_records if waiting_records else 0.0
    return Cost(len(timed), seconds, records, typical, fixed, each * 1e6, waiting, fixed + each * every, steps)


def _steps(inputs: Inputs, waiting_records: int) -> Sequence[StepCost]:
    runs = inputs.runs[-STEPPED_RUNS:]
    ended = inputs.steps
    timed: Mapping[str, _Timed] = {step: [] for step in STEPS}
    for run in runs:
        for step, seconds in _seconds(run, inputs.planned_at.get(run.spec.run), ended.get(run.spec.run)).items():
            timed[step].append((records_of(run), seconds))
    costs = []
    for step, known in timed.items():
        if known:
            typical, line = median([one for _, one in known]), _line(known)
            forecast = line[0] + line[1] * waiting_records if line and waiting_records else None
            costs.append(StepCost(step, len(known), typical, sum(one for _, one in known), forecast))
    return costs


def _seconds(run: CommittedRun, planned_ms: int | None, ended: StepTimes | None) -> Mapping[str, float]:
    """Return the seconds of a run's steps, by step. Steps whose start or end is unknown are left out."""
    if ended is None:
        return {}
    times = (planned_ms, ended.executed_ms, ended.staged_ms, run.recorded_at, ended.published_ms)
    pairs = zip(STEPS, times, times[1:], strict=False)
    return {step: (end - begin) / 1000 for step, begin, end in pairs if begin and end and begin <= end}


def _line(timed: _Timed) -> tuple[float, float] | None:
    """Return the fixed seconds of a run and the seconds per record; None if they cannot be estimated from these runs."""
    if len(timed) < _ENOUGH:
        return None
    sizes, seconds = [float(records) for records, _ in timed], [one for _, one in timed]
    try:
        each, fixed = linear_regression(sizes, seconds)
        is_clear = correlation(sizes, seconds) >= _CLEAR
    except StatisticsError:  # raised if all runs have the same size or took the same time
        return None
    if not is_clear:
        return None
    return max(0.0, fixed), each
