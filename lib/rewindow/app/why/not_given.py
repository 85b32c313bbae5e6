"""Say why a replay does not give a row that a run wrote: the table was altered, or the code was another."""

from __future__ import annotations

from collections.abc import Iterator

from rewindow.app.drift import described_drift
from rewindow.app.why.output import Output
from rewindow.control.plan.branches import CommittedRun
from rewindow.control.plan.job_diff import differences_besides_tables
from rewindow.control.plan.spec import OUTPUT, JobBinding
from rewindow.control.plan.suppress_edits import removed_suppresses
from rewindow.errors import CheckpointError, RewindowError, StorageError
from rewindow.report.text import asked


def not_given(output: Output, run: CommittedRun) -> RewindowError:
    """Return the error: `StorageError` (74) if the table lacks rows that were published, else `CheckpointError` (76)."""
    job, branch, name = output.job.name, output.branch.name, run.spec.name
    for told in described_drift(output.tables, job, output.state, branch, f"{OUTPUT}{output.topic}"):
        message = (
            f"a replay of run {name} does not give this row, and {told}. Publish it again, then ask again: "
            f"`rewindow republish {asked(job, branch)}`"
        )
        return StorageError(message)
    if changed := _changes(run.spec.binding, output.job.binding):
        listed = "\n".join(f"  - {line}" for line in changed)
        message = (
            f"run {name} wrote this row with other code, and the code that there is now does not give it:\n{listed}\n"
            "Check out the version that wrote it, then ask again"
        )
        return CheckpointError(message)
    reasons = [*_other_code(output, run), "the code is not deterministic (`rewindow verify`)"]
    message = f"a replay of run {name} and the runs before it does not give this row: {', or '.join(reasons)}"
    return CheckpointError(message)


def _other_code(output: Output, run: CommittedRun) -> Iterator[str]:
    """Yield how the code of the last earlier run that had another differs from that of a run; nothing if none had."""
    for earlier in reversed(output.state.chain_to(run.spec.run)[:-1]):
        if changed := _changes(earlier.spec.binding, run.spec.binding):
            yield f"it depends on state that run {earlier.spec.name} left with other code ({'; '.join(changed)})"
            return


def _changes(before: JobBinding, now: JobBinding) -> list[str]:
    """Return the differences that may change a row, including those of a suppress, with which a run resumes as it is."""
    changed = [
        *differences_besides_tables(before, now),
        *(f"suppress {name} is removed" for name in removed_suppresses(before, now)),
        *(f"suppress {name} is new" for name in removed_suppresses(now, before)),
    ]
    if not changed and before.fingerprint != now.fingerprint:
        return ["a suppress was enabled or disabled"]
    return changed
