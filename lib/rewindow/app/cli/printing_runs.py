"""Output of the commands that plan and execute runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from rewindow.app.cli.printing import Printer
from rewindow.app.command_log import command_log
from rewindow.app.result_lines import TAKES_NO_MORE
from rewindow.app.watch import Watch
from rewindow.contracts.exit_codes import ON_HOLD
from rewindow.contracts.staged_files import QUARANTINE
from rewindow.control.health.holds import Hold, explain_holds
from rewindow.control.health.inputs import dropped_by_reason, records_from_feed, rows_by_output
from rewindow.control.health.phrases import counted, keep_dropped, see_quarantined
from rewindow.control.plan.planner import UpToDate, UpToDateButChanged
from rewindow.control.plan.spec import MAIN
from rewindow.control.run import RunReport
from rewindow.streams.metrics import DROPS, LATE_RECORD_DROP, PUNCTUATE, QUARANTINED, sum_by_reason
from rewindow.streams.record import known_time

if TYPE_CHECKING:
    from rewindow.control.ingest.landing_report import LandReport

_MOSTLY = 2
"""A run warns if its late records times this number are at least as many as all its records, so if half of them are late."""


def summarise(result: RunReport, watch: Watch) -> dict[str, Any]:
    """Return a run's summary as JSON values. ``dropped`` is ``{"late": {reason: records}}``, ``seconds`` is elapsed real time."""
    spec, commit = result.spec, result.commit
    return {
        "job": spec.job,
        "branch": spec.branch,
        "run": spec.name,
        "records": dict(commit.consumed),
        "rows": rows_by_output(commit),
        "dropped": dropped_by_reason(result.metrics),
        "punctuations": sum(sum_by_reason(result.metrics, PUNCTUATE).values()),
        "commits": watch.commits,
        "hints": list(result.hints),
        "hint_codes": [hint.code for hint in result.hints],
        "seconds": watch.seconds,
    }


def summary_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield the last line of a summary: how long the run took, and the command for the report."""
    punctuations = f"{summary['punctuations']} punctuations, " if summary["punctuations"] else ""
    branch = "" if summary["branch"] == MAIN else f" --branch {summary['branch']}"
    took = f"{punctuations}{summary['commits']} commits in {summary['seconds']:.1f} seconds"
    yield f"  {took}. Report: rewindow report {summary['job']}{branch}"


def reason_lines(result: RunReport) -> Iterator[str]:
    """Yield which records a run dropped, the command that shows them, and why outputs got no rows."""
    dropped = dropped_by_reason(result.metrics)
    for kind, reasons in dropped.items():
        yield f"  {kind}: {', '.join(f'{count} {reason}'.strip() for reason, count in reasons.items())}"
    yield from _how_to_see(result, dropped)
    yield from _mostly_late(result)
    yield from (f"  {hint}." for hint in result.hints)
    if cleaned := result.cleaned:
        merged = f"merged {counted(cleaned.merged, 'small file')} into {cleaned.into:,}"
        deleted = f"deleted {counted(cleaned.deleted_files, 'file')} ({cleaned.deleted_bytes:,} bytes)"
        yield f"  Cleaned up in {cleaned.seconds:.1f} seconds: {merged}, {deleted}."


def _mostly_late(result: RunReport) -> Iterator[str]:
    """Yield a warning if a node dropped very many late records. Then its grace period or the feed's order is probably wrong.

    Nodes that count one record several times, once for each of its windows, are left out.
    """
    records = records_from_feed(result.spec.binding, result.commit.consumed)
    once = {timed.node for timed in result.spec.binding.timed or () if timed.has_one_window}
    late = (
        sum_by_reason((row for row in result.metrics if row["node"] == node), LATE_RECORD_DROP) for node in sorted(once)
    )
    if 0 < records <= _MOSTLY * max((sum(reasons.values()) for reasons in late), default=0):
        branch = "" if result.spec.branch == MAIN else f" --branch {result.spec.branch}"
        report = f"rewindow report {result.spec.job}{branch}"
        half_late = f"Of the {counted(records, 'record')} of the run, half or more were late"
        yield f"  {half_late}: the lateness in `{report}` shows which grace period keeps them."


def _how_to_see(result: RunReport, dropped: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield advice on how to see the dropped records. Without ``dropped: quarantine``, runs only count them."""
    refused = sum(dropped.get(DROPS[QUARANTINED], {}).values())
    rows = result.commit.rows_in(QUARANTINE)
    if rows:
        yield f"  See them with `{see_quarantined(result.spec.job)}`."
    if rows <= refused and any(kind != DROPS[QUARANTINED] for kind in dropped):
        yield f"  {keep_dropped(result.spec.job)}."


class RunPrinter(Printer):
    """Prints plans and results of runs."""

    def planned(self, plan: dict[str, Any]) -> None:
        """Print the plan of a run."""
        if self.as_json:
            self.json(plan)
            return
        from rewindow.control.plan.explain import explain

        for line in explain(plan):
            self.message(line)

    def ran(
        self,
        results: Sequence[RunReport | UpToDate],
        watch: Watch | None = None,
        published: Sequence[Mapping[str, Any]] = (),
        landed: LandReport | None = None,
        holds: Sequence[Hold] = (),
    ) -> None:
        """Print the results of runs and a summary of the last run.

        The JSON object describes the last run. It has the earlier runs under ``taken_over``, and what was landed before under
        ``landed``. ``lagged`` names the targets to which this command published runs of an earlier command. ``published``
        describes the output tables, and ``holds`` the runs on hold.
        """
        last = next((result for result in reversed(results) if isinstance(result, RunReport)), None)
        summary = summarise(last, watch) if last and watch else None
        if summary and (log := command_log()):
            log.info("summary", **summary)
        if self.as_json:
            before = [describe_result(result) for result in results[:-1]]
            more = {**({"taken_over": before} if before else {}), **({"landed": landed.as_json()} if landed else {})}
            state = {
                "summary": summary if results[-1] is last else None,
                "published": list(published),
                "lagged": watch.lagged if watch else [],
                "on_hold": list(holds),
            }
            self.json({**describe_result(results[-1]), **state, **more})
            return
        if watch is not None and watch.commits and last is None:
            self.say(f"Published what an earlier call had committed ({counted(watch.commits, 'commit')}).")
        for result in results:
            if isinstance(result, UpToDate):
                for line in _nothing_lines(result, is_first=result is results[0]):
                    self.message(line)
                continue
            for line in _result_lines(result):
                self.say(line)
            spec = result.spec
            if watch is not None and (spec.number, spec.parent) == (1, None) and spec.branch != MAIN:
                undo = f"`rewindow branch drop {spec.job} {spec.branch}` removes it"
                self.say(f"  Branch {spec.branch} is new, and starts with the first landing. {undo}.")
            for line in reason_lines(result):
                self.say(line)
        if summary:
            for line in summary_lines(summary):
                self.say(line)
        for line in explain_holds(holds):
            self.say(line)


def describe_result(result: RunReport | UpToDate) -> dict[str, Any]:
    """Return a run's result as JSON values."""
    if isinstance(result, UpToDate):
        changed = list(result.changed) if isinstance(result, UpToDateButChanged) else []
        return {"run": None, "reason": result.reason, "reason_code": result.reason.code, "changed": changed}
    spec, commit = result.spec, result.commit
    return {
        "run": spec.name,
        "ledger_row": spec.run,
        "epochs": [spec.input.first, spec.input.last],
        "watermark_ms": known_time(commit.watermark_ms),
        "consumed": dict(commit.consumed),
        "targets": {target: total.rows for target, total in commit.targets.items()},
        "tables": {target: table.path for target, table in spec.binding.tables.items()},
        "dropped": dropped_by_reason(result.metrics),
        "expectations": [expectation.as_json() for expectation in commit.expectations],
        "cleaned": asdict(result.cleaned) if result.cleaned else None,
    }


def _nothing_lines(result: UpToDate, *, is_first: bool) -> Iterator[str]:
    yield f"Nothing {'' if is_first else 'more '}to run: {result.reason}."
    if isinstance(result, UpToDateButChanged):
        yield f"The job has changed since the checkpoint of run {result.since}, and {result.next_accepts}:"
        yield from (f"  - {line}" for line in result.changed)


def _result_lines(result: RunReport) -> Iterator[str]:
    spec, commit = result.spec, result.commit
    taken = ", ".join(f"{count} of {topic}" for topic, count in commit.consumed.items()) or "no records"
    epochs = f"epochs {spec.input.first} to {spec.input.last}" if spec.epochs else "no epochs"
    resumed = " It completes the plan of an attempt that did not finish." if spec.takes_over is not None else ""
    yield f"Run {spec.name} of {spec.job}: {epochs}, {taken}.{resumed}"
    for target, total in commit.targets.items():
        kind, _, topic = target.partition("/")
        if kind == "output":
            where = spec.binding.tables[target].path
            added = f"added to {where}" if result.is_published else f"staged for {where}, not published"
            yield f"  {topic}: {counted(total.rows, 'row')} {added}"
    yield from (f"  {expectation.on_fail}: {expectation.sentence}" for expectation in commit.unmet)
    if spec.final:
        yield f"  Every window is closed, and branch {spec.branch} is sealed: {TAKES_NO_MORE}."


def end_on_hold(holds: Sequence[Mapping[str, Any]]) -> None:
    """End the command with exit code 79 if a run is on hold."""
    if holds:
        raise typer.Exit(ON_HOLD)
