"""What the runs were expected to be like: the results of expectations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rewindow.contracts.expectations import OnFail
from rewindow.control.health.inputs import Inputs
from rewindow.control.health.phrases import counted
from rewindow.control.plan.job_state import CommittedRun
from rewindow.report.facts import Expected, Level, Sentence

MET, WARNED, ACCEPTED, ON_HOLD = "met", "warned", "accepted", "on hold"


def expectations(inputs: Inputs) -> list[Expected]:
    """Return the results of the selected runs, oldest first."""
    return [one for run in inputs.runs for one in _of_run(run, run.spec.run in inputs.accepted)]


def _of_run(run: CommittedRun, is_accepted: bool) -> Iterator[Expected]:  # noqa: FBT001 - used once, above
    for one in run.commit.expectations:
        held = ACCEPTED if is_accepted else ON_HOLD
        became = MET if one.is_met else held if one.on_fail == OnFail.HOLD else WARNED
        yield Expected(run.spec.name, one.output, one.name, became, one.observed, one.expected, one.examples)


def told_expectations(job: str, found: Sequence[Expected]) -> Iterator[Sentence]:
    """Yield what the verdict says of expectations that were not met; ``job`` as a command line names it."""
    held = [one for one in found if one.became == ON_HOLD]
    if held:
        runs = list(dict.fromkeys(one.run for one in held))
        yield Sentence(
            Level.WARNING,
            f"On hold and not published: {', '.join(runs)}. {_told(held[0])} (`rewindow publish {job} --accept --run {runs[0]}`)",
        )
    warned = [one for one in found if one.became in (WARNED, ACCEPTED)]
    if warned:
        yield Sentence(
            Level.WARNING,
            f"Published although {counted(len(warned), 'expectation')} not met; the last: {_told(warned[-1])}",
        )
    if found and not (held or warned):
        yield Sentence(Level.GOOD, f"All {counted(len(found), 'result')} of expectations are as expected")


def _told(one: Expected) -> str:
    return f"{one.output}: {one.name}: {one.observed}, expected {one.expected}"
