"""The health of a branch: landings that wait for it, records that the watermark holds back, and its line in a listing.

`plan`, `status`, `report` and notebooks each show a part of the value that `job_health` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rewindow.control.health.entries import Entry, Status, age_ms
from rewindow.control.health.holds import UNFINISHED, Hold, describe_holds
from rewindow.control.health.inputs import Held, Inputs, Unknown, held_records, not_taken
from rewindow.control.health.phrases import waits
from rewindow.control.health.waiting_results import Stalled, stalled
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.job_state import Branch, JobState
from rewindow.control.plan.spec import MAIN, RunSpec
from rewindow.errors import NotNowError, ReasonMessage, RewindowError
from rewindow.streams.record import known_time

if TYPE_CHECKING:
    from rewindow.control.health.waiting_results import Stalled
    from rewindow.control.plan.planner import UpToDate


@dataclass(frozen=True, slots=True)
class JobHealth:
    """The health of a branch.

    ``waiting`` are the landings that the branch has not processed, ``waiting_records`` the number of their records in the job's
    topics. ``held`` are landed records that the feed's watermark holds back. ``slowest`` are the partitions for which the
    watermark waits. ``stalled`` are results that no run and no landing makes final, unless their partition gets new records.
    ``lagging`` maps each target to the number of commits that its table lacks. ``landed_through_ms`` is the feed's watermark
    (epoch ms), None if there is none.
    """

    waiting: range
    waiting_records: int
    landed_through_ms: int | None
    held: Sequence[Held]
    slowest: Sequence[str] | Unknown
    stalled: Sequence[Stalled] | Unknown
    on_hold: Sequence[Hold]
    lagging: Mapping[str, int] | Unknown
    is_sealed: bool

    def unknown(self) -> Iterator[dict[str, str]]:
        """Yield the unknown values as JSON values, each with the reason."""
        for about, value in (("slowest", self.slowest), ("silent", self.stalled), ("lagging", self.lagging)):
            if isinstance(value, Unknown):
                yield {"about": about, "reason": value.reason}


def job_health(inputs: Inputs, state: JobState) -> JobHealth:
    """Return the health of the branch in ``inputs``."""
    feed, branch, landing = inputs.feed, inputs.branch, inputs.last_landing
    topics = inputs.topics if inputs.runs else feed.definition.logs.keys()
    waiting, held = not_taken(feed, branch.last_epoch), held_records(feed, topics)
    ranges = landing.ranges if landing else ()
    slowest: Sequence[str] | Unknown = []
    if held:
        waits_for = inputs.waits_for
        slowest = waits_for if isinstance(waits_for, Unknown) else [f"{tp.topic}-{tp.partition}" for tp in waits_for]
    return JobHealth(
        waiting=waiting,
        waiting_records=sum(feed.records(waiting, tp) for tp in ranges if tp.topic in topics),
        landed_through_ms=known_time(landing.watermark_ms) if landing else None,
        held=held,
        slowest=slowest,
        stalled=stalled(inputs),
        on_hold=describe_holds(state, branch.name),
        lagging=inputs.lagging,
        is_sealed=branch.is_sealed,
    )


def held_words(held: Sequence[Held]) -> str:
    """Return the sentence part that says how many landed records wait, such as ``3 landed records wait``."""
    return waits(sum(records.records for records in held), "landed record")


def branch_entry(
    state: JobState,
    feed: Feed,
    name: str,
    decide: Callable[[], RunSpec | UpToDate | RewindowError],
    lagging: Callable[[], Mapping[str, int]],
) -> Entry:
    """Return the entry of a branch in a listing.

    For `main`, all landings that it has not processed wait. For another branch, only landings that `main` has processed and the
    branch has not.

    ``decide`` is called if the branch may get a run. It returns the plan of the run, or that there is nothing to run, or the
    error with which the run would be refused. ``lagging`` is called if nothing is due. It returns how many commits each table
    lacks.
    """
    branch, of_main, held = state.branch(name), state.branch(MAIN).last_epoch, state.on_hold(name)
    waiting = max(0, (len(feed.landings) if name == MAIN else of_main) - branch.last_epoch)
    entry = Entry(
        name,
        Status.FRESH,
        feed=feed.definition.feed,
        epoch=branch.last_epoch or None,
        waiting=waiting,
        watermark_ms=known_time(branch.watermark_ms),
    )
    if branch.is_sealed and not (name == MAIN and waiting) and not held:
        return replace(entry, details=[ReasonMessage("sealed-takes-no-runs", "sealed: takes no more runs")], waiting=0)
    decided = decide()
    if isinstance(decided, NotNowError):
        return replace(entry, status=Status.RUNNING, details=[ReasonMessage.of(decided)])
    if isinstance(decided, RewindowError):
        return replace(entry, status=Status.BROKEN, details=[ReasonMessage.of(decided)], exit_code=decided.exit_code)
    if held:
        run, unmet = held[0].spec.name, held[0].commit.held_by[0].sentence
        detail = ReasonMessage("run-not-met", "run {run}: {unmet}", run=run, unmet=unmet)
        return replace(entry, status=Status.ON_HOLD, details=[detail])
    is_unfinished = isinstance(decided, RunSpec) and decided.takes_over is not None
    unfinished = [UNFINISHED] if is_unfinished else []
    details = [ReasonMessage("landings-wait", "{landings}", landings=waits(waiting, "landing")), *unfinished]
    if branch.head is None and waiting:
        return replace(entry, status=Status.NEVER_RUN, details=details)
    if waiting > (1 if name == MAIN else 0):
        return replace(entry, status=Status.BEHIND, details=details)
    if is_unfinished or waiting:
        return replace(entry, status=Status.DUE, details=unfinished or details)
    if lagging():
        detail = ReasonMessage("tables-lag", "tables lag behind the ledger: the next run publishes them")
        return replace(entry, status=Status.DUE, details=[detail])
    return entry


def progress_figures(entry: Entry, branch: Branch | None, now_ms: int) -> dict[str, Any]:
    """Return figures by name that say how far a branch has processed its feed. Unknown figures are None."""
    head = branch.head if branch else None
    return {
        "runs": len(branch.runs) if branch else None,
        "last_run": head.spec.name if head else None,
        "committed_at_ms": known_time(head.recorded_at) if head else None,
        "watermark_ms": entry.watermark_ms,
        "age_ms": age_ms(entry.watermark_ms, now_ms),
        "unpublished": len(branch.unpublished) if branch else None,
        "waiting": 0 if entry.waiting is None and entry.status is Status.NEVER_RUN else entry.waiting,
    }
