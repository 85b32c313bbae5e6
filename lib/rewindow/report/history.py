"""What the runs did, one after the other: records, rows, clocks, punctuations and stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rewindow.control.plan.spec import CHANGELOG
from rewindow.report.drops import dropped_in
from rewindow.report.figures import Clocks, Held, Progress, RunFigures, Schedule, StoreSize
from rewindow.report.material import Material, records_of, rows_of
from rewindow.streams.metrics import NODE, PUNCTUATE, SIMULATED_TIME
from rewindow.streams.record import UNKNOWN, known_time
from rewindow.streams.serde.schema import PARTITION

_STREAM, _WALL = "STREAM_TIME", "WALL_CLOCK_TIME"


def progress(material: Material) -> Progress:
    """Return how far the head is, and what waits."""
    head, feed = material.head, material.feed
    taken, landings = head.spec.input.last, feed.landings
    topic_partitions = [one for landing in landings[-1:] for one in landing.ranges if one.topic in material.topics]
    waiting, held = range(material.branch.last_epoch + 1, len(landings) + 1), _held(material)
    return Progress(
        runs=len(material.runs),
        first_epoch=material.runs[0].spec.input.first,
        last_epoch=taken,
        records=sum(records_of(run) for run in material.runs),
        rows=sum(rows_of(run) for run in material.runs),
        watermark_ms=known_time(head.commit.watermark_ms),
        committed_at_ms=known_time(head.recorded_at),
        is_sealed=head.spec.final,
        waiting_landings=len(waiting),
        waiting_records=sum(feed.records(waiting, one) for one in topic_partitions),
        landed_through_ms=known_time(landings[-1].watermark_ms) if landings else None,
        slowest=[f"{one.topic}-{one.partition}" for one in material.waits_for] if held else (),
        held=held,
        lagging=dict(material.lagging),
    )


def run_figures(material: Material) -> Iterator[RunFigures]:
    """Yield the figures of each selected run."""
    code: Mapping[str, str] | None = None
    for run in material.runs:
        span, now = run.spec.input, run.spec.binding.code
        yield RunFigures(
            run=run.spec.name,
            first_epoch=span.first,
            last_epoch=span.last,
            records=records_of(run),
            rows=rows_of(run),
            watermark_ms=known_time(run.commit.watermark_ms),
            committed_at_ms=known_time(run.recorded_at),
            seconds=material.seconds_of(run),
            is_final=run.spec.final,
            changed_code=bool(code) and code != now,
            dropped=dropped_in(material, run),
        )
        code = now


def clocks(material: Material) -> list[Clocks]:
    """Return the clocks after each run whose reports are read: those of the task that is furthest behind."""
    found = []
    for run in material.runs:
        reports = material.reports.get(run.spec.run)
        if reports is None:
            continue
        states = [report.state for report in reports if report.state]
        rows = [row for report in reports for row in report.metrics if row["name"] == PUNCTUATE]
        found.append(
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
    return found


def schedules(material: Material) -> list[Schedule]:
    """Return the schedules after the head, by node, clock and interval, with the calls of the selected runs."""
    grouped: dict[tuple[str, str, int], list[int | None]] = {}
    for state in material.tasks.values():
        for one in state["schedules"]:
            grouped.setdefault((one["node"], one["type"], one["interval_ms"]), []).append(one["due_ms"])
    calls: dict[tuple[str, str], int] = {}
    for row in material.metrics:
        if row["name"] == PUNCTUATE and row["level"] == NODE:
            calls[row["node"], row["reason"]] = calls.get((row["node"], row["reason"]), 0) + row["total"]
    return [
        Schedule(node, clock, every, min((due for due in dues if due is not None), default=None), len(dues), total)
        for (node, clock, every), dues in sorted(grouped.items())
        for total in [calls.get((node, clock), 0)]
    ]


def store_sizes(material: Material) -> list[StoreSize]:
    """Return the stores after the head: entries, and what the selected runs wrote to the changelogs."""
    kinds = {store["name"]: store["kind"] for part in material.head.spec.binding.topology for store in part["stores"]}
    found = []
    for store in sorted(material.head.spec.binding.stores):
        totals = [(run, run.commit.targets.get(f"{CHANGELOG}{store}")) for run in material.runs]
        written = [(run, total) for run, total in totals if total is not None and total.rows]
        columns = material.read_store(store)
        found.append(
            StoreSize(
                store=store,
                kind=kinds.get(store, ""),
                keys=None if columns is None else len(columns.get(PARTITION, ())),
                rows=sum(total.rows for _, total in written),
                bytes=sum(total.bytes for _, total in written),
                last_run=written[-1][0].spec.name if written else None,
            )
        )
    return found


def _least(times: Any) -> int | None:
    """Return the earliest of the known times; None if there is none."""
    return min((time for time in times if time != UNKNOWN), default=None)


def _held(material: Material) -> list[Held]:
    """Return the landed records of the job that the feed's watermark holds back."""
    landings = material.feed.landings
    ranges = landings[-1].ranges if landings else {}
    return [
        Held(one.topic, one.partition, landed.end - landed.release, landed.max_timestamp)
        for one, landed in sorted(ranges.items())
        if landed.end > landed.release and one.topic in material.topics
    ]
