"""Command output: tables and sentences for people, or one JSON object."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rewindow.app.cli.log_format import log_failure, log_summary
from rewindow.app.cli.progress import watched
from rewindow.app.cli.summary import reason_lines, summarise, summary_lines
from rewindow.app.failures import Failure
from rewindow.app.next_run import UpToDateButChanged
from rewindow.app.sentences import TAKES_NO_MORE, in_one_line, landed_lines, readable
from rewindow.app.watch import Watch
from rewindow.control.health.inputs import dropped_by_reason
from rewindow.control.health.job_health import Hold, explain_holds, explain_lag
from rewindow.control.health.phrases import counted
from rewindow.control.ingest.protocols import LandReport
from rewindow.control.plan.explain import explain
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.spec import MAIN
from rewindow.control.run import RunReport
from rewindow.errors import StoppedError
from rewindow.streams.record import known_time


class Printer:
    """Prints results to stdout, progress and errors to stderr."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._out = Console(
            file=sys.stdout, highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160
        )
        self._err = Console(stderr=True, highlight=False, soft_wrap=True)

    def say(self, line: str) -> None:
        """Print a line without interpreting markup."""
        self._out.print(line, markup=False)

    def table(self, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Print rows as a table."""
        self._out.print(as_table(title, rows))

    def listed(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Print rows as a table, or as a JSON object with this name."""
        if self.as_json:
            self.json({name: list(rows)})
        else:
            self.table("", [readable(row) for row in rows])

    def landed(self, feed: str, report: Any) -> None:
        """Print the result of `land`."""
        if self.as_json:
            self.json(report.as_json())
            return
        for sentence in report.warnings:
            self._err.print(f"warning: {sentence}", markup=False)
        for line in landed_lines(feed, report):
            self.say(line)

    def planned(self, plan: dict[str, Any]) -> None:
        """Print the plan of a run."""
        if self.as_json:
            self.json(plan)
            return
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
        if summary:
            log_summary(summary)
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

    def shown(self, shown: Mapping[str, Any]) -> None:
        """Print runs, tables and metrics."""
        if self.as_json:
            self.json(shown)
            return
        if not shown["runs"]:
            job, branch = shown["job"], shown["branch"]
            others = f" Branches with runs: {', '.join(shown['branches'])}." if shown["branches"] else ""
            command = f"`rewindow run {job}`" if branch in (None, MAIN) else f"`rewindow run {job} --branch {branch}`"
            self.say(f"Job {job} has no runs on branch {branch or MAIN} yet. Start one with {command}.{others}")
            return
        runs = [{name: value for name, value in run.items() if name != "ledger_row"} for run in shown["runs"]]
        for title, rows in (("Runs", runs), ("Tables", shown["tables"]), ("Metrics", shown["metrics"])):
            self.table(title, [readable(row) for row in rows])
        if shown["unmet"]:
            self.table("Expectations not met", [readable(row) for row in shown["unmet"]])
        for line in explain_holds(shown["on_hold"]):
            self.say(line)
        for line in explain_lag(
            shown["lagging"], f"The next command on the job, such as `rewindow run {shown['job']}`,"
        ):
            self.say(line)

    def explained(self, explained: Mapping[str, Any]) -> None:
        """Print a topology."""
        if self.as_json:
            self.json(explained)
            return
        for part in explained["sub_topologies"]:
            self.say(f"Sub-topology {part['sub_topology']}: {part['execution']}")
            for source in part["sources"]:
                self.say(f"  reads {source['topic']}: {source['how']}")
            self.table("", [readable(node) for node in part["nodes"]])
            for store in part["stores"]:
                self.say(f"  store {store['name']} ({store['kind']}): {store['columns']}")
            if "spark_plan" in part:
                self.say(part["spark_plan"])
        if most := explained["inline"]:
            self.say(
                f"A sub-topology with at most {most:,} records to read and restore runs in this process, without Spark "
                "(ten times as many with vectorized execution)"
            )
        if not explained["landed"]:
            self.say(
                f"Feed {explained['feed']} was never landed: types are those of its sources now, and json what only the "
                f"landing decides. Land it with `rewindow land {explained['feed']}`"
            )
        for output in explained["outputs"]:
            self.say(f"Output {output['topic']} -> {output['table']}: {output['columns']}")
            if explained["landed"] and "value json" in output["columns"].split(", "):
                self.say(
                    "  value is undeclared, so it is JSON text: declare a NamedTuple, as in map_values(f, value=Total)"
                )
        if "svg" in explained:
            self.say(f"Drawing: {explained['svg']}")

    def failed(self, failure: Failure, error: BaseException | None = None) -> None:
        """Print why a command failed, and the stack trace of ``error`` if given."""
        log_failure(failure)
        if error is not None:
            traceback.print_exception(error, file=sys.stderr)
        if self.as_json:
            self.json({"error": failure.message, "exit_code": failure.exit_code, "code": failure.code})
        else:
            # Behind several lines, the code has a line of its own: the last may be a command that people copy.
            space = "\n" if "\n" in failure.message else " "
            self._err.print(f"rewindow: {failure.message}{space}[{failure.code}]", markup=False)

    @contextmanager
    def progress(self) -> Iterator[Watch]:
        """Yield an observer of a command's steps: logs them if logging is on, and shows them on a terminal.

        Raises `StoppedError` (130) for Ctrl-C, with what the command has done so far.
        """
        with watched(self._err, is_quiet=self.as_json) as watch:
            try:
                yield watch
            except KeyboardInterrupt as error:
                raise StoppedError("progress-interrupted", "{progress}", progress=watch.what_is_kept()) from error

    def json(self, value: Any) -> None:
        """Print one JSON object."""
        sys.stdout.write(json.dumps(value, sort_keys=True) + "\n")


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


def as_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return rows as a table with right-aligned numbers."""
    table = Table(title=Text(title) if title else None, title_justify="left", show_edge=False, pad_edge=False)
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        is_number = all(isinstance(row.get(name), int | float | None) for row in rows)
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_value_as_it_is(row.get(name)) for name in names))
    return table


def _value_as_it_is(value: Any) -> Text:
    """Return a value as it is: rich would take ``[red]`` in a string as markup."""
    return Text("" if value is None else in_one_line(str(value)))


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
    yield from (f"  {one.on_fail}: {one.told}" for one in commit.unmet)
    if spec.final:
        yield f"  Every window is closed, and branch {spec.branch} is sealed: {TAKES_NO_MORE}."
