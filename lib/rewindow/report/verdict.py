"""The verdict: what someone who was woken at night needs first, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rewindow.control.health.inputs import Unknown
from rewindow.control.health.job_health import JobHealth, held_words, lag_words
from rewindow.control.health.lost_records import Drop
from rewindow.control.health.phrases import counted
from rewindow.control.health.waiting_results import OpenWindows
from rewindow.report.expectations import ON_HOLD, told_expectations
from rewindow.report.facts import BranchDiff, Expected, Level, Outlook, Progress, Sentence, Verification
from rewindow.report.text import (
    instant,
    number,
    share_of_records,
    to_the_second,
    told_holds,
    told_left_out,
    where_results_wait,
)


def verdict(
    job: str,
    progress: Progress,
    outlook: Outlook,
    verification: Verification,
    drops: list[Drop],
    windows: OpenWindows,
    health: JobHealth,
    *,
    is_newest: bool,
    detailed_runs: int,
    diff: BranchDiff | None = None,
    expected: Sequence[Expected] = (),
) -> list[Sentence]:
    """Return the headline and the sentences below it. ``job``: as a command line names it, with its branch.

    ``drops`` are those of the last ``detailed_runs``.
    """
    return [
        _headline(progress, outlook, expected, health, is_newest=is_newest),
        *told_expectations(job, expected),
        *_behind(job, progress, outlook, health, is_newest=is_newest),
        *_compared(diff),
        *_lost(drops, f" in the last {number(detailed_runs)} runs" if detailed_runs < progress.runs else ""),
        *_stalled(health),
        *_open(windows),
        *_verified(job, progress, verification),
    ]


def _headline(
    progress: Progress,
    outlook: Outlook,
    expected: Sequence[Expected],
    health: JobHealth,
    *,
    is_newest: bool,
) -> Sentence:
    known = progress.watermark_ms is not None
    through = f"Complete through {to_the_second(progress.watermark_ms)}" if known else "Complete through no time yet"
    if any(one.became == ON_HOLD for one in expected):
        told = f"{through[0].lower()}{through[1:]}"
        return Sentence(Level.WARNING, f"A run is on hold, and its rows are not published; but for them {told}")
    if progress.is_sealed:
        return Sentence(Level.GOOD, "Final: every window is closed and the branch is sealed")
    if outlook.refused is not None:
        return Sentence(Level.BAD, f"{through}; the next run is refused")
    if not is_newest:
        return Sentence(Level.NOTE, f"{through}, after this run; later runs exist")
    if outlook.pending is not None:
        return Sentence(Level.WARNING, f"{through}; a planned run is not committed")
    if progress.waiting_landings:
        return Sentence(Level.WARNING, f"{through}; behind by {counted(progress.waiting_landings, 'landing')}")
    if progress.lagging:
        return Sentence(Level.WARNING, f"{through}; tables lag behind the ledger")
    if isinstance(health.stalled, Unknown):
        what = "up to date with all that is landed; whether results wait for silent partitions is unknown"
        return Sentence(Level.NOTE, f"{through}, and {what}")
    if health.stalled:
        return Sentence(
            Level.WARNING, f"{through}, and up to date with all that is landed; results wait for silent partitions"
        )
    return Sentence(Level.GOOD, f"{through}, and up to date with all that is landed")


def _behind(
    job: str, progress: Progress, outlook: Outlook, health: JobHealth, *, is_newest: bool
) -> Iterator[Sentence]:
    if outlook.refused is not None:
        yield Sentence(Level.BAD, f"The next run would end with: {outlook.refused}")
    if outlook.pending is not None:
        yield Sentence(Level.WARNING, outlook.pending)
    if progress.waiting_landings and is_newest:
        what = f"{counted(progress.waiting_landings, 'landing')} with {counted(progress.waiting_records, 'record')}"
        yield Sentence(
            Level.WARNING,
            f"Not replayed yet: {what}, landed through {to_the_second(progress.landed_through_ms)} (`rewindow run {job}`)",
        )
    if health.held:
        slow = f", which waits for {', '.join(progress.slowest)}" if progress.slowest else ""
        yield Sentence(Level.WARNING, f"Held back: {held_words(health.held)} for the feed's watermark{slow}")
    if progress.lagging:
        lag = f"Tables lag behind the ledger: {lag_words(progress.lagging)}"
        yield Sentence(Level.WARNING, f"{lag} (`rewindow run {job}` publishes them)")


def _stalled(health: JobHealth) -> Iterator[Sentence]:
    """Yield the results that wait for partitions without records, and what is not known."""
    if not isinstance(health.stalled, Unknown):
        yield from (Sentence(Level.WARNING, str(one)) for one in health.stalled)
    for unknown in health.unknown():
        yield Sentence(Level.NOTE, f"Not known ({unknown['about']}): {unknown['reason']}")


def _compared(diff: BranchDiff | None) -> Iterator[Sentence]:
    if diff is None:
        return
    held = told_holds(diff.on_hold).removesuffix(".")
    if held:
        yield Sentence(Level.WARNING, held if diff.extent else f"Nothing to compare yet. {held}")
    elif not diff.extent:
        yield Sentence(Level.NOTE, f"Nothing to compare: {diff.first} and {diff.second} replayed no epoch separately")
    if diff.left_out:
        yield Sentence(Level.NOTE, told_left_out(diff.left_out))
    if not diff.extent:
        return
    unequal = {one.output: one.different + one.only_first + one.only_second for one in diff.outputs}
    told = ", ".join(f"{output} in {counted(keys, 'key')}" for output, keys in unequal.items() if keys)
    if told:
        yield Sentence(Level.WARNING, f"Differs from branch {diff.second} in {diff.extent}: {told}")
    else:
        yield Sentence(Level.GOOD, f"Equal to branch {diff.second} in {diff.extent}, in every output")


def _lost(drops: list[Drop], where: str) -> Iterator[Sentence]:
    by_kind: dict[str, list[Drop]] = {}
    for drop in drops:
        by_kind.setdefault(drop.kind, []).append(drop)
    if not by_kind:
        yield Sentence(Level.GOOD, f"No record was dropped{where}")
        return
    yield Sentence(Level.WARNING, f"Dropped{where}: {'; '.join(_told(kind, some) for kind, some in by_kind.items())}")


def _open(windows: OpenWindows) -> Iterator[Sentence]:
    if windows.unknown is not None:
        yield Sentence(Level.NOTE, f"Not known (open windows): {windows.unknown}")
    if windows.results:
        where = f" {told}" if (told := where_results_wait(windows)) else ""
        closes = "is sent at" if windows.shown and windows.shown[0].waits_for else "closes at"
        first = f"; the first {closes} {instant(windows.shown[0].closes_at_ms)}" if windows.shown else ""
        yield Sentence(Level.NOTE, f"Not final yet: {counted(windows.results, 'result')}{where}{first}")


def _verified(job: str, progress: Progress, verification: Verification) -> Iterator[Sentence]:
    yield Sentence(
        Level.GOOD,
        f"The ledger is whole: {counted(progress.runs, 'selected run')}, audited before commit, each chained to the one before",
    )
    different = [f"{one.target} of {one.run}" for one in verification.differences]
    if different:
        yield Sentence(Level.BAD, f"Verified by replay, and different: {', '.join(different)}. Do not trust these rows")
    elif verification.checked:
        yield Sentence(Level.GOOD, f"Verified by replay: {', '.join(verification.checked)} gave the same rows again")
    else:
        yield Sentence(Level.NOTE, f"Not verified by replay here: `rewindow report {job} --verify` does it")


def _told(kind: str, drops: list[Drop]) -> str:
    """Return the drops of a kind. Only those of one node are a share of the records: another node may drop the same ones."""
    by_node: dict[str, int] = {}
    for drop in drops:
        by_node[drop.where] = by_node.get(drop.where, 0) + drop.records
    node, most = max(by_node.items(), key=lambda item: item[1])
    of_records = share_of_records([drop for drop in drops if drop.where == node])
    of_all = f", {of_records}" if of_records else ""
    if len(by_node) == 1:
        return f"{number(most)} {kind} in {node}{of_all}"
    return f"{number(sum(by_node.values()))} {kind} in {len(by_node)} nodes, at most {number(most)} in {node}{of_all}"
