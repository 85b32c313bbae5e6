"""Decide the next run of a branch from the job's state, the feed and the request. Pure.

The rules, in order:

1. A request needs no run if a run with its key is committed, or if all its landings are processed. A sealed branch, whose last
   run was final, gets no more runs.
2. The feed must still have the landings that the parent run processed, and code and settings must fit the parent's checkpoint.
   Code and settings are checked even if there is nothing to run. Otherwise a changed job would appear healthy until the next
   landing (ADR-81).
3. A pending plan of a live process blocks the branch (exit code 75). A pending plan of a dead process is completed with the
   same epochs and clock. If the request asks for more epochs, another call is needed after that run. If the plan has more
   epochs than the request, or seals the branch and the request does not, a new plan replaces it. The old plan has committed
   nothing (ADR-80).
4. Otherwise the run processes the epochs after the parent's, up to the requested landing or time, but at most as many as the
   job's file allows. The run with the last requested epoch gets the request's key and, if requested, seals the branch.

A backfill recomputes history with the current code. If there is no branch of its name, it creates one. If the branch exists and
its own runs executed other code, the branch starts over. If they executed the same code, the backfill continues after them
(ADR-87). Before a branch is created or starts over, its first run is checked. So a refused backfill creates no branch and
replaces no runs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from rewindow.control.ingest.feed_progress import interval_ends
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.branch_decisions import check_case, check_open, decide_branch, decide_rewind, run_before
from rewindow.control.plan.compatibility import (
    check_binding,
    check_kept,
    check_landings,
    has_input_of,
)
from rewindow.control.plan.job_diff import changes_since
from rewindow.control.plan.job_fold import fold_row
from rewindow.control.plan.job_state import Branch, JobState, LedgerRow
from rewindow.control.plan.spec import BEGINNING, MAIN, Attempt, EpochSpan, JobBinding, RunRequest, RunSpec
from rewindow.control.plan.stored_runs import run_of_request
from rewindow.errors import CheckpointError, InvariantError, NotNowError, ReasonMessage, UsageError

Alive = Callable[[Attempt], bool]
"""Returns whether the process of an attempt may still be alive (see `heartbeat.is_alive`)."""


@dataclass(frozen=True, slots=True)
class UpToDate:
    """The reason why there is nothing to run."""

    reason: ReasonMessage


@dataclass(frozen=True, slots=True)
class UpToDateButChanged(UpToDate):
    """The reason why there is nothing to run, for a job that differs from its checkpoint.

    The job's next run accepts these changes; if ``needs_option``, only with `--accept-changes`. This call had that option, too.
    """

    since: str
    changed: tuple[str, ...]
    needs_option: bool = False

    @property
    def next_accepts(self) -> str:
        """When and how a run accepts the changes, as the end of a sentence."""
        option = ", with `--accept-changes` again: this call has run nothing" if self.needs_option else ""
        return f"the change takes effect in the next run that takes a landing{option}"

    def told(self) -> str:
        """Return the reason and the changes as text without a full stop."""
        changes = "; ".join(self.changed)
        return f"{self.reason}. The job has changed since the checkpoint of run {self.since}, and {self.next_accepts}: {changes}"


def plan_run(
    state: JobState, feed: Feed, request: RunRequest, binding: JobBinding, attempt: Attempt, alive: Alive
) -> RunSpec | UpToDate:
    """Return the next run of the requested branch, or `UpToDate`.

    Raises `NotNowError` (75) while another attempt is alive or a landing is missing, `SourceError` (66) if a new
    generation dropped landings of the parent, `CheckpointError` (76) for an incompatible job or a sealed branch, and
    `ConfigError` (78) for a new branch that `check_case` refuses.
    """
    branch = state.branch(request.branch)
    check_case(state, request.branch)
    check_open(branch)
    if request.key is not None and (made := run_of_request(branch, request.key)) is not None:
        return UpToDate(
            ReasonMessage(
                "request-committed",
                "the request {key!r} is committed as run {run}",
                key=request.key,
                run=made.spec.name,
            )
        )
    through = last_requested_epoch(feed, request)
    seals = request.final and not branch.is_sealed and through == branch.last_epoch > 0
    is_other = branch.head is not None and (
        feed.definition.generation > branch.head.spec.input.generation or feed.ledger != branch.head.spec.input.ledger
    )
    if is_other and request.through_landing is None:
        # This is checked even if there is nothing to run, because the landings behind the branch's rows may have been replaced.
        check_landings(branch, feed)
    if through <= branch.last_epoch and not seals:
        if not branch.is_sealed:
            check_binding(branch, binding, request)
        return UpToDate(_why_nothing(branch, feed, through))
    if branch.is_sealed:
        raise _sealed(branch, binding.job)
    check_landings(branch, feed)
    accepted = check_binding(branch, binding, request)
    planned = _pending(branch, feed, request, through, alive)
    if planned is not None:
        taken, final = planned.input, planned.final
    else:
        end = min(through, branch.last_epoch + request.at_most) if request.at_most else through
        last, generation = feed.landings[end - 1], feed.definition.generation
        clock = (branch.watermark_ms, last.watermark_ms)
        taken = EpochSpan(feed.ledger, generation, branch.last_epoch + 1, end, *clock, last.attempt)
        final = request.final and end == through
    return RunSpec(
        branch=branch.name,
        number=branch.next_number,
        run=state.rows + 1,
        parent=branch.head.spec.run if branch.head else None,
        input=taken,
        final=final,
        binding=binding,
        attempt=attempt,
        key=request.key if taken.last == through else None,
        takes_over=planned.run if planned else None,
        repeats=planned.attempt.id if planned and _is_same_code(planned.binding, binding) else None,
        accepted=accepted,
    )


def last_requested_epoch(feed: Feed, request: RunRequest) -> int:
    """Return the last epoch that a request includes; 0 if it includes none. Raises `NotNowError` (75) for a future landing."""
    count = len(feed.landings)
    if request.through_landing is not None:
        if request.through_landing > count:
            raise _not_landed(feed.definition.feed, request.through_landing, count)
        return request.through_landing
    if request.through_ms is not None:
        return bisect_right(feed.landings, request.through_ms, key=lambda landing: landing.watermark_ms)
    return count if request.until_ms is None else _arrived_by(feed, request.until_ms)


def _not_landed(feed: str, landing: int, count: int) -> NotNowError:
    """Return the error for a landing that a feed does not have. ``count``: how many it has."""
    # One call may make several landings or none. So `land` is advised only if its next landing has the requested number.
    newest = f"name landing {count}, the newest one"
    fix = f"`rewindow land {feed}` makes it if the source has new rows"
    if landing > count + 1:
        fix = newest if count else f"nothing is landed: `rewindow land {feed}` first"
    elif count:
        fix += f". If it has none, {newest}"
    return NotNowError(
        "landing-not-there-yet",
        "landing {landing} of feed {feed!r} does not exist yet (it has {landings}): {fix}",
        landing=landing,
        feed=feed,
        landings=count,
        fix=fix,
    )


def check_is_pending(state: JobState, spec: RunSpec) -> None:
    """Raise `NotNowError` (75) if another attempt fenced the run, `InvariantError` (70) if the run is already committed."""
    if state.is_pending(spec):
        return
    if state.find_run(spec.run) is not None:
        raise InvariantError(
            "run-already-committed",
            "run {run} (ledger row {row}) is already committed: an attempt can commit only once",
            run=spec.name,
            row=spec.run,
        )
    raise NotNowError(
        "run-fenced", "run {run} was fenced by another attempt and was not committed: run again", run=spec.name
    )


@dataclass(frozen=True, slots=True)
class Backfill:
    """A backfill: its first epoch, the request for its runs, and the current job, bound to the tables of its branch."""

    first_epoch: int
    request: RunRequest
    feed: Feed
    binding: JobBinding
    attempt: Attempt
    alive: Alive


def decide_backfill(wanted: Backfill, state: JobState, check: Callable[[RunSpec], None]) -> LedgerRow | None:
    """Return the row that creates or rewinds the branch of a backfill; None if the next run can continue the branch.

    Raises what `plan_run` and ``check`` raise for the first run after the row, `UsageError` (2) for a branch that starts after
    the first epoch of the backfill, and `CheckpointError` (76) for a branch whose output tables have other columns.
    """
    row = _first_row(wanted, state)
    if row is not None:
        after = fold_row(state, row)
        decision = plan_run(after, wanted.feed, wanted.request, wanted.binding, wanted.attempt, wanted.alive)
        if isinstance(decision, RunSpec):
            check(decision)
    return row


def _is_same_code(binding: JobBinding, other: JobBinding) -> bool:
    digests = ({zone: clock["digest"] for zone, clock in one.zones.items()} for one in (binding, other))
    return binding.fingerprint == other.fingerprint and binding.code == other.code and next(digests) == next(digests)


def _sealed(branch: Branch, job: str) -> CheckpointError:
    before = branch.runs[-2].spec.name if len(branch.runs) > 1 else BEGINNING
    of_branch = "" if branch.name == MAIN else f" --branch {branch.name}"
    return CheckpointError(
        "branch-sealed",
        "branch {branch!r} is sealed: run {run} was final. Take that run back with `rewindow "
        "rewind {job}{option} --to {before}`, or replay on a new branch: `rewindow run {job} "
        "--branch NAME`. If the job is done, remove conf/jobs/{job}.yaml",
        branch=branch.name,
        run=branch.runs[-1].spec.name,
        job=job,
        option=of_branch,
        before=before,
    )


def _arrived_by(feed: Feed, until_ms: int) -> int:
    """Return the number of the last landing whose interval of arrival ended by a time.

    Raises `UsageError` (2) if the feed has no intervals.
    """
    ends = [*interval_ends(feed)]
    if None in ends:
        raise UsageError(
            "feed-without-intervals",
            "--until: feed {feed!r} is not landed in intervals (`landing: {{every: ..}}`): use --through",
            feed=feed.definition.feed,
        )
    return sum(1 for end in ends if end is not None and end <= until_ms)


def _pending(branch: Branch, feed: Feed, request: RunRequest, through: int, alive: Alive) -> RunSpec | None:
    """Return the plan of an unfinished attempt that the next run completes; None if there is none.

    Raises `NotNowError` (75) while that attempt is alive. ``through`` is the last requested epoch.
    """
    planned = branch.pending
    if planned is None:
        return None
    _check_not_live(branch, request, alive)
    takes_more = planned.input.last > through or (planned.final and not request.final)
    return None if request.replan or takes_more or not has_input_of(feed, planned) else planned


def _check_not_live(branch: Branch, request: RunRequest, alive: Alive) -> None:
    """Raise `NotNowError` (75) while another attempt executes the pending run of a branch, unless the request fences it."""
    planned = branch.pending
    if planned is None or request.take_over or not alive(planned.attempt):
        return
    owner = planned.attempt
    raise NotNowError(
        "run-being-executed",
        "run {run} is being executed by process {process} on {host}: wait for it, or pass {run_option} to fence it",
        run_option="--takeover",
        run=planned.name,
        process=owner.pid,
        host=owner.host or "this host",
    )


def never_landed(feed: str) -> ReasonMessage:
    """Return the reason why there is nothing to run for a feed without landings."""
    return ReasonMessage(
        "feed-without-landings", "feed {feed!r} has no landings yet: run `rewindow land {feed}` first", feed=feed
    )


def _why_nothing(branch: Branch, feed: Feed, through: int) -> ReasonMessage:
    name = feed.definition.feed
    if not feed.landings:
        return never_landed(name)
    if through == 0:
        return ReasonMessage(
            "landings-later-than-requested",
            "the first landing of feed {feed!r} is complete only through a later time than requested",
            feed=name,
        )
    if branch.last_epoch > through:
        return ReasonMessage(
            "branch-beyond-epoch",
            "branch {branch!r} is already at epoch {last}, beyond epoch {epoch}",
            branch=branch.name,
            last=branch.last_epoch,
            epoch=through,
        )
    return ReasonMessage(
        "all-epochs-taken",
        "branch {branch!r} has taken all epochs through {epoch}{sealed}",
        branch=branch.name,
        epoch=through,
        sealed=" and is sealed" if branch.is_sealed else "",
    )


def _first_row(wanted: Backfill, state: JobState) -> LedgerRow | None:
    name = wanted.request.branch
    if name not in state.branches:
        return decide_branch(state, name, MAIN, run_before(state, state.branch(MAIN), wanted.first_epoch))
    branch = state.branches[name]
    check_open(branch)
    _check_covers(wanted, branch)
    if not branch.has_own_runs or not changes_since(branch, wanted.binding):
        return None
    _check_not_live(branch, wanted.request, wanted.alive)
    check_kept(branch, wanted.binding)
    return decide_rewind(state, name, branch.base.spec.name if branch.base else BEGINNING)


def _check_covers(wanted: Backfill, branch: Branch) -> None:
    """Raise `UsageError` (2) if a branch starts after the first epoch of the backfill."""
    base = branch.base
    if base is None or base.spec.input.last < wanted.first_epoch:
        return
    raise UsageError(
        "branch-starts-later",
        "branch {branch!r} starts after run {run}, with epoch {epoch}, so it cannot replay from epoch "
        "{wanted}: use another branch, or drop this one with `rewindow branch drop {job} {branch}`",
        branch=branch.name,
        run=base.spec.name,
        epoch=base.spec.input.last + 1,
        wanted=wanted.first_epoch,
        job=wanted.binding.job,
    )
