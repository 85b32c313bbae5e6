"""Output of the commands that plan and execute runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from rewindow.app.cli.printing import Printer
from rewindow.app.cli.summary import reason_lines, summarise, summary_lines
from rewindow.app.command_log import command_log
from rewindow.app.sentences import TAKES_NO_MORE
from rewindow.contracts.exit_codes import ON_HOLD
from rewindow.control.health.inputs import dropped_by_reason
from rewindow.control.health.job_health import Hold, explain_holds
from rewindow.control.health.phrases import counted
from rewindow.control.plan.planner import UpToDate, UpToDateButChanged
from rewindow.control.plan.spec import MAIN
from rewindow.control.run import RunReport
from rewindow.streams.record import known_time

if TYPE_CHECKING:
    from rewindow.app.watch import Watch
    from rewindow.control.ingest.protocols import LandReport


class RunPrinter(Printer):
    """Prints plans and results of runs."""

    def planned(self, plan: dict[str, Any]) -> None:
        """Print the plan of a run."""
        if self.as_json:
            self.json(plan)
            return
        from rewindow.control.plan.explain import explain

        for line in explain(plan):
            self.say(line)

    def ran(
        self,
        results: Sequence[RunReport | UpToDate],
        watch: Watch | None = None,
        published: Sequence[Mapping[str, Any]] = (),
        landed: LandReport | None = None,
        holds: Sequence[Hold] = (),
    ) -> None:
        """Print the results of runs and a summary of the last one.

        JSON describes the last run, with any earlier ones under ``taken_over``, and what was ``landed`` before it. ``lagged``
        names the targets that got what an earlier command had committed. ``published`` describes the output tables, ``holds``
        the runs on hold.
        """
        last = next((result for result in reversed(results) if isinstance(result, RunReport)), None)
        summary = summarise(last, watch) if last and watch else None
        if summary and (log := command_log()):
            log.info("summary", **summary)
        if self.as_json:
            before = [describe_result(result) for result in results[:-1]]
            more = {**({"taken_over": before} if before else {}), **({"landed": landed.as_json()} if landed else {})}
            told = {
                "summary": summary if results[-1] is last else None,
                "published": list(published),
                "lagged": watch.lagged if watch else [],
                "on_hold": list(holds),
            }
            self.json({**describe_result(results[-1]), **told, **more})
            return
        if watch is not None and watch.commits and last is None:
            self.say(f"Published what an earlier call had committed ({counted(watch.commits, 'commit')}).")
        for result in results:
            if isinstance(result, UpToDate):
                for line in _nothing_lines(result, is_first=result is results[0]):
                    self.say(line)
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
        return {"run": None, "reason": result.reason, "changed": changed}
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
        "expectations": [one.as_json() for one in commit.expectations],
    }


def _nothing_lines(result: UpToDate, *, is_first: bool) -> Iterator[str]:
    yield f"Nothing {'' if is_first else 'more '}to run: {result.reason}."
    if isinstance(result, UpToDateButChanged):
        accepts = result.next_accepts
        yield f"The job has changed since the checkpoint of run {result.since}. {accepts[0].upper()}{accepts[1:]}:"
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
    yield from (f"  {one.on_fail}: {one.sentence}" for one in commit.unmet)
    if spec.final:
        yield f"  Every window is closed, and branch {spec.branch} is sealed: {TAKES_NO_MORE}."


def end_on_hold(holds: Sequence[Mapping[str, Any]]) -> None:
    """End the command with exit code 79 if a run is on hold."""
    if holds:
        raise typer.Exit(ON_HOLD)
