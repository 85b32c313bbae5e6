"""Say why rows are not as the runs wrote them, or a replay does not give one: the table was altered, or the code was another."""

from __future__ import annotations

from collections.abc import Iterator

from rewindow.app.drift import described_drift
from rewindow.app.why.output import Output
from rewindow.control.health.phrases import command_words
from rewindow.control.plan.job_diff import differences_besides_tables, removed_suppresses
from rewindow.control.plan.job_state import CommittedRun
from rewindow.control.plan.spec import OUTPUT, JobBinding
from rewindow.errors import CheckpointError, RewindowError, StorageError


def check_not_altered(output: Output) -> None:
    """Raise `StorageError` (74) if another writer has replaced rows of the table, so that rows of runs cannot be known.

    Files are read only if the table has some that no run staged, as after an UPDATE or OPTIMIZE.
    """
    spec = output.branch.tables.get(f"{OUTPUT}{output.topic}")
    if spec is None or not output.tables.has_foreign_rows(spec):
        return
    for told in _altered(output):
        raise StorageError("why-table-altered", "{reason}", reason=told)


def not_given(output: Output, run: CommittedRun) -> RewindowError:
    """Return the error: `StorageError` (74) if the table lacks rows that were published, else `CheckpointError` (76)."""
    name = run.spec.name
    for told in _altered(output):
        return StorageError(
            "row-altered-since-published",
            "a replay of run {run} does not give this row, and {reason}",
            run=name,
            reason=told,
        )
    if changed := _changes(run.spec.binding, output.job.binding):
        listed = "\n".join(f"  - {line}" for line in changed)
        return CheckpointError(
            "row-of-other-code",
            "run {run} wrote this row with other code, and the code that there is now does not give "
            "it:\n{changes}\nCheck out the version that wrote it, then ask again",
            run=name,
            changes=listed,
        )
    reasons = [*_other_code(output, run), "the code is not deterministic (`rewindow verify`)"]
    return CheckpointError(
        "row-not-replayed",
        "a replay of run {run} and the runs before it does not give this row: {reasons}",
        run=name,
        reasons=", or ".join(reasons),
    )


def _altered(output: Output) -> Iterator[str]:
    """Yield how the table differs from what was published, and what helps; nothing if it does not."""
    job, branch = output.job.name, output.branch.name
    for told in described_drift(output.tables, job, output.state, branch, f"{OUTPUT}{output.topic}"):
        yield f"{told}. Publish it again, then ask again: `rewindow republish {command_words(job, branch)}`"


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
