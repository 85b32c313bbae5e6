"""Gather a report from its inputs: the facts, and the verdict, the part that an operator needs first in an emergency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from rewindow.contracts.expectations import OnFail
from rewindow.control.health.holds import lag_words
from rewindow.control.health.inputs import Inputs, Unknown
from rewindow.control.health.job_health import JobHealth, held_words
from rewindow.control.health.late_and_dropped_records import Drop, drops, lateness
from rewindow.control.health.phrases import command_words, counted
from rewindow.control.health.waiting_results import OpenWindows, open_windows
from rewindow.control.plan.job_state import CommittedRun
from rewindow.control.plan.spec import OUTPUT
from rewindow.errors import VerdictMessage
from rewindow.report.figures import changes, clocks, cost, progress, run_figures, schedules, store_sizes
from rewindow.report.figures import replaced as what_was_replaced
from rewindow.report.report_facts import (
    BranchDiff,
    Digest,
    Expected,
    Level,
    Outlook,
    Progress,
    Report,
    Sentence,
    Verification,
)
from rewindow.report.text import (
    instant,
    number,
    share_of_records,
    to_the_second,
    told_holds,
    told_left_out,
    where_results_wait,
)

MET, WARNED, ACCEPTED, ON_HOLD = "met", "warned", "accepted", "on hold"


def gather(
    inputs: Inputs,
    health: JobHealth,
    *,
    ledger: str,
    selection: str,
    made_at_ms: int,
    version: str,
    outlook: Outlook,
    verification: Verification,
    diff: BranchDiff | None = None,
) -> Report:
    """Return the report on the selected runs of a branch. ``selection`` describes the selection in words."""
    spec, commit = inputs.head.spec, inputs.head.commit
    done = progress(inputs, health)
    report = Report(
        job=spec.job,
        branch=inputs.branch.name,
        feed=spec.binding.feed,
        selection=selection,
        made_at_ms=made_at_ms,
        version=version,
        verdict=(),
        progress=done,
        outlook=outlook,
        verification=verification,
        runs=list(run_figures(inputs)),
        detailed_runs=len(inputs.known_reports),
        drops=drops(inputs),
        lateness=lateness(inputs),
        open_windows=open_windows(inputs),
        clocks=clocks(inputs),
        schedules=schedules(inputs),
        stores=store_sizes(inputs),
        changes=changes(inputs),
        cost=cost(inputs, done.waiting_records),
        chain=commit.chain,
        ledger=ledger,
        digests=[
            Digest(target, spec.binding.tables[target].path, total.rows, total.digest)
            for target, total in sorted(
                commit.targets.items(), key=lambda item: (not item[0].startswith(OUTPUT), item[0])
            )
            if target in spec.binding.tables
        ],
        diff=diff,
        expectations=expectations(inputs),
        replaced=what_was_replaced(inputs),
    )
    return replace(report, verdict=verdict(report, health, is_newest=inputs.is_newest))


def as_json(report: Report) -> Mapping[str, Any]:
    """Return a report as JSON values. Unknown values are null."""
    return asdict(report)


def verdict(report: Report, health: JobHealth, *, is_newest: bool) -> list[Sentence]:
    """Return the headline and the sentences below it."""
    job, runs = command_words(report.job, report.branch), report.detailed_runs
    where = f" in the last {number(runs)} runs" if runs < report.progress.runs else ""
    return [
        _headline(report, health, is_newest=is_newest),
        *_expectations(job, report.expectations),
        *_behind(job, report, health, is_newest=is_newest),
        *_compared(report.diff),
        *_lost(report.drops, where),
        *_stalled(health),
        *_open(report.open_windows),
        *_verified(job, report.progress, report.verification),
    ]


def _headline(report: Report, health: JobHealth, *, is_newest: bool) -> Sentence:
    progress, outlook = report.progress, report.outlook
    time = "no time yet" if progress.watermark_ms is None else to_the_second(progress.watermark_ms)
    through = f"Complete through {time}"
    current = f"{through}, and up to date with all that is landed"
    if any(expected.became == ON_HOLD for expected in report.expectations):
        message = VerdictMessage(
            "headline-on-hold",
            "A run is on hold, and its rows are not published; but for them {through}",
            through=f"complete through {time}",
        )
        return Sentence.of(Level.WARNING, message)
    if progress.is_sealed:
        message = VerdictMessage("headline-final", "Final: every window is closed and the branch is sealed")
        return Sentence.of(Level.GOOD, message)
    if outlook.refused is not None:
        message = VerdictMessage("headline-refused", "{through}; the next run is refused", through=through)
        return Sentence.of(Level.BAD, message)
    if not is_newest:
        message = VerdictMessage("headline-later-runs", "{through}, after this run; later runs exist", through=through)
        return Sentence.of(Level.NOTE, message)
    if outlook.pending is not None:
        message = VerdictMessage("headline-run-planned", "{through}; a planned run is not committed", through=through)
        return Sentence.of(Level.WARNING, message)
    if health.waiting:
        message = VerdictMessage(
            "headline-behind",
            "{through}; behind by {landings}",
            through=through,
            landings=counted(len(health.waiting), "landing"),
        )
        return Sentence.of(Level.WARNING, message)
    if progress.lagging:
        message = VerdictMessage("headline-tables-lag", "{through}; tables lag behind the ledger", through=through)
        return Sentence.of(Level.WARNING, message)
    if isinstance(health.stalled, Unknown):
        message = VerdictMessage(
            "headline-waiting-unknown",
            "{current}; whether results wait for silent partitions is unknown",
            current=current,
        )
        return Sentence.of(Level.NOTE, message)
    if health.stalled:
        message = VerdictMessage(
            "headline-results-wait", "{current}; results wait for silent partitions", current=current
        )
        return Sentence.of(Level.WARNING, message)
    return Sentence.of(Level.GOOD, VerdictMessage("headline-up-to-date", "{current}", current=current))


def _behind(job: str, report: Report, health: JobHealth, *, is_newest: bool) -> Iterator[Sentence]:
    outlook, progress = report.outlook, report.progress
    if outlook.refused is not None:
        message = VerdictMessage("verdict-run-refused", "The next run would end with: {reason}", reason=outlook.refused)
        yield Sentence.of(Level.BAD, message)
    if outlook.pending is not None:
        message = VerdictMessage("verdict-run-planned", "{pending}", pending=outlook.pending)
        yield Sentence.of(Level.WARNING, message)
    if health.waiting and is_newest:
        waiting = f"{counted(len(health.waiting), 'landing')} with {counted(health.waiting_records, 'record')}"
        message = VerdictMessage(
            "verdict-landings-wait",
            "Not replayed yet: {what}, landed through {through} (`rewindow run {job}`)",
            what=waiting,
            through=to_the_second(health.landed_through_ms),
            job=job,
        )
        yield Sentence.of(Level.WARNING, message)
    if health.held:
        slow = f", which waits for {', '.join(progress.slowest)}" if progress.slowest else ""
        message = VerdictMessage(
            "verdict-records-held",
            "Held back: {held} for the feed's watermark{slow}",
            held=held_words(health.held),
            slow=slow,
        )
        yield Sentence.of(Level.WARNING, message)
    if progress.lagging:
        message = VerdictMessage(
            "verdict-tables-lag",
            "Tables lag behind the ledger: {lacks} (`rewindow run {job}` publishes them)",
            lacks=lag_words(progress.lagging),
            job=job,
        )
        yield Sentence.of(Level.WARNING, message)


def _stalled(health: JobHealth) -> Iterator[Sentence]:
    """Yield sentences about results that wait for partitions without new records, and about what is unknown."""
    if not isinstance(health.stalled, Unknown):
        for result in health.stalled:
            message = VerdictMessage("verdict-results-wait", "{what}. {fix}", what=result.what, fix=result.fix)
            yield Sentence.of(Level.WARNING, message)
    for unknown in health.unknown():
        yield _not_known(unknown["about"], unknown["reason"])


def _not_known(about: str, reason: str) -> Sentence:
    message = VerdictMessage("verdict-not-known", "Not known ({about}): {reason}", about=about, reason=reason)
    return Sentence.of(Level.NOTE, message)


def _compared(diff: BranchDiff | None) -> Iterator[Sentence]:
    if diff is None:
        return
    held = told_holds(diff.on_hold).removesuffix(".")
    if held:
        nothing = "" if diff.extent else "Nothing to compare yet. "
        message = VerdictMessage("verdict-branch-on-hold", "{nothing}{held}", nothing=nothing, held=held)
        yield Sentence.of(Level.WARNING, message)
    elif not diff.extent:
        message = VerdictMessage(
            "verdict-nothing-to-compare",
            "Nothing to compare: {first} and {second} replayed no epoch separately",
            first=diff.first,
            second=diff.second,
        )
        yield Sentence.of(Level.NOTE, message)
    if diff.left_out:
        message = VerdictMessage("verdict-runs-left-out", "{left_out}", left_out=told_left_out(diff.left_out))
        yield Sentence.of(Level.NOTE, message)
    if not diff.extent:
        return
    unequal = {
        of_output.output: of_output.different + of_output.only_first + of_output.only_second
        for of_output in diff.outputs
    }
    listed = ", ".join(f"{output} in {counted(keys, 'key')}" for output, keys in unequal.items() if keys)
    if listed:
        message = VerdictMessage(
            "verdict-branch-differs",
            "Differs from branch {branch} in {extent}: {keys}",
            branch=diff.second,
            extent=diff.extent,
            keys=listed,
        )
        yield Sentence.of(Level.WARNING, message)
    else:
        message = VerdictMessage(
            "verdict-branch-equal",
            "Equal to branch {branch} in {extent}, in every output",
            branch=diff.second,
            extent=diff.extent,
        )
        yield Sentence.of(Level.GOOD, message)


def _lost(drops: Sequence[Drop], where: str) -> Iterator[Sentence]:
    by_kind: dict[str, list[Drop]] = {}
    for drop in drops:
        by_kind.setdefault(drop.kind, []).append(drop)
    if not by_kind:
        message = VerdictMessage("verdict-nothing-dropped", "No record was dropped{where}", where=where)
        yield Sentence.of(Level.GOOD, message)
        return
    dropped = "; ".join(_told(kind, some) for kind, some in by_kind.items())
    message = VerdictMessage("verdict-records-dropped", "Dropped{where}: {dropped}", where=where, dropped=dropped)
    yield Sentence.of(Level.WARNING, message)


def _open(windows: OpenWindows) -> Iterator[Sentence]:
    if windows.unknown is not None:
        yield _not_known("open windows", windows.unknown)
    if windows.results:
        where = f" {words}" if (words := where_results_wait(windows)) else ""
        closes = "is sent at" if windows.shown and windows.shown[0].waits_for else "closes at"
        first = f"; the first {closes} {instant(windows.shown[0].closes_at_ms)}" if windows.shown else ""
        message = VerdictMessage(
            "verdict-not-final",
            "Not final yet: {results}{where}{first}",
            results=counted(windows.results, "result"),
            where=where,
            first=first,
        )
        yield Sentence.of(Level.NOTE, message)


def _verified(job: str, progress: Progress, verification: Verification) -> Iterator[Sentence]:
    message = VerdictMessage(
        "verdict-ledger-whole",
        "The ledger is whole: {runs}, audited before commit, each chained to the one before",
        runs=counted(progress.runs, "selected run"),
    )
    yield Sentence.of(Level.GOOD, message)
    different = [f"{difference.target} of {difference.run}" for difference in verification.differences]
    if different:
        message = VerdictMessage(
            "verdict-replay-differs",
            "Verified by replay, and different: {rows}. Do not trust these rows",
            rows=", ".join(different),
        )
        yield Sentence.of(Level.BAD, message)
    elif verification.checked:
        message = VerdictMessage(
            "verdict-replay-same",
            "Verified by replay: {runs} gave the same rows again",
            runs=", ".join(verification.checked),
        )
        yield Sentence.of(Level.GOOD, message)
    else:
        message = VerdictMessage(
            "verdict-not-verified", "Not verified by replay here: `rewindow report {job} --verify` does it", job=job
        )
        yield Sentence.of(Level.NOTE, message)


def _told(kind: str, drops: list[Drop]) -> str:
    """Return a text about the drops of one kind.

    If only one node dropped records, the text gives their share. Several nodes may drop the same record, so no share is given
    for several nodes.
    """
    by_node: dict[str, int] = {}
    for drop in drops:
        by_node[drop.where] = by_node.get(drop.where, 0) + drop.records
    node, most = max(by_node.items(), key=lambda item: item[1])
    of_records = share_of_records([drop for drop in drops if drop.where == node])
    of_all = f", {of_records}" if of_records else ""
    if len(by_node) == 1:
        return f"{number(most)} {kind} in {node}{of_all}"
    return f"{number(sum(by_node.values()))} {kind} in {len(by_node)} nodes, at most {number(most)} in {node}{of_all}"


def expectations(inputs: Inputs) -> list[Expected]:
    """Return the results of all expectations in the selected runs, oldest run first."""
    return [expected for run in inputs.runs for expected in _of_run(run, is_accepted=run.spec.run in inputs.accepted)]


def _of_run(run: CommittedRun, *, is_accepted: bool) -> Iterator[Expected]:
    for result in run.commit.expectations:
        held = ACCEPTED if is_accepted else ON_HOLD
        became = MET if result.is_met else held if result.on_fail == OnFail.HOLD else WARNED
        yield Expected(
            run.spec.name, result.output, result.name, became, result.observed, result.expected, result.examples
        )


def _expectations(job: str, results: Sequence[Expected]) -> Iterator[Sentence]:
    """Yield the sentences about expectations. ``job``: the words that name job and branch on a command line."""
    held = [result for result in results if result.became == ON_HOLD]
    if held:
        runs = list(dict.fromkeys(result.run for result in held))
        accept = f"rewindow publish {job} --accept --run {runs[0]}"
        message = VerdictMessage(
            "verdict-runs-on-hold",
            "On hold and not published: {runs}. {expected} (`{accept}`)",
            runs=", ".join(runs),
            expected=_expected(held[0]),
            accept=accept,
        )
        yield Sentence.of(Level.WARNING, message)
    warned = [result for result in results if result.became in (WARNED, ACCEPTED)]
    if warned:
        unmet = counted(len(warned), "expectation")
        message = VerdictMessage(
            "verdict-expectations-not-met",
            "Published although {what} not met; the last: {expected}",
            what=unmet,
            expected=_expected(warned[-1]),
        )
        yield Sentence.of(Level.WARNING, message)
    if results and not (held or warned):
        message = VerdictMessage(
            "verdict-expectations-met",
            "All {results} of expectations are as expected",
            results=counted(len(results), "result"),
        )
        yield Sentence.of(Level.GOOD, message)


def _expected(result: Expected) -> str:
    return f"{result.output}: {result.name}: {result.observed}, expected {result.expected}"
