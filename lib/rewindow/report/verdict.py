"""The verdict: what someone who was woken at night needs first, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from rewindow.report.facts import Level, Outlook, Sentence, Verification
from rewindow.report.figures import Drop, OpenWindows, Progress
from rewindow.report.text import counted, instant, to_the_second


def verdict(
    job: str,
    progress: Progress,
    outlook: Outlook,
    verification: Verification,
    drops: list[Drop],
    windows: OpenWindows,
    *,
    is_newest: bool,
) -> list[Sentence]:
    """Return the headline and the sentences below it. ``job``: as a command line names it, with its branch."""
    return [
        _headline(progress, outlook, is_newest=is_newest),
        *_behind(job, progress, outlook, is_newest=is_newest),
        *_lost(progress, drops),
        *_open(windows),
        *_verified(job, progress, verification),
    ]


def _headline(progress: Progress, outlook: Outlook, *, is_newest: bool) -> Sentence:
    known = progress.watermark_ms is not None
    through = f"Complete through {to_the_second(progress.watermark_ms)}" if known else "Complete through no time yet"
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
    return Sentence(Level.GOOD, f"{through}, and up to date with all that is landed")


def _behind(job: str, progress: Progress, outlook: Outlook, *, is_newest: bool) -> Iterator[Sentence]:
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
    if progress.held:
        held = counted(sum(one.records for one in progress.held), "landed record")
        slow = f", which waits for {', '.join(progress.slowest)}" if progress.slowest else ""
        yield Sentence(Level.WARNING, f"Held back: {held} above the feed's watermark{slow}")
    if progress.lagging:
        lag = ", ".join(f"{target} by {counted(count, 'commit')}" for target, count in progress.lagging.items())
        yield Sentence(Level.WARNING, f"Tables lag behind the ledger: {lag} (`rewindow resume {job}` publishes them)")


def _lost(progress: Progress, drops: list[Drop]) -> Iterator[Sentence]:
    by_kind: dict[str, int] = {}
    for drop in drops:
        by_kind[drop.kind] = by_kind.get(drop.kind, 0) + drop.records
    if not by_kind:
        yield Sentence(Level.GOOD, "No record was dropped")
        return
    told = ", ".join(f"{count:,} {kind}{_share(count, progress.records)}" for kind, count in by_kind.items())
    yield Sentence(Level.WARNING, f"Dropped records: {told}")


def _open(windows: OpenWindows) -> Iterator[Sentence]:
    if windows.results:
        in_windows = f" in {counted(windows.windows, 'window')}" if windows.windows else ""
        first = f"; the first closes at {instant(windows.shown[0].closes_at_ms)}" if windows.shown else ""
        yield Sentence(Level.NOTE, f"Not final yet: {counted(windows.results, 'result')}{in_windows}{first}")


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


def _share(count: int, records: int) -> str:
    if not records:
        return ""
    return f" ({count / records:.2%} of the records)" if count <= records else ""
