"""The publications of each table of a branch. They are computed from the ledger alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.plan.job_state import CommittedRun, JobState, Publication, Restart, Standing
from rewindow.control.plan.sequence import History
from rewindow.control.plan.spec import OUTPUT, TableSpec
from rewindow.control.plan.stored_state import StoredPublications
from rewindow.errors import CheckpointError
from rewindow.tables.shared.paths import EXPECTATIONS, METRICS, QUARANTINE

Reports = Callable[[CommittedRun], Sequence[TaskReport]]
"""A function that reads a run's reports from the journal."""

SHARED_TABLES: Mapping[str, str] = {METRICS: "job", QUARANTINE: "name", EXPECTATIONS: "job"}
"""Tables that several jobs write, each with the column that names the job or feed of a row."""


@dataclass(frozen=True, slots=True)
class Due:
    """A table and all its publications, in the order of their ordinals 1, 2, 3 ..."""

    target: str
    table: TableSpec
    publications: Sequence[Publication]
    restart: Restart


def due_tables(state: JobState, name: str) -> Iterator[Due]:
    """Yield each table of a branch with its publications, outputs first."""
    branch = state.branch(name)
    for target in sorted(branch.tables, key=_outputs_first):
        table = branch.tables[target]
        if target.startswith(OUTPUT) and branch.standing is Standing.DROPPED:
            # `gc` removes these tables.
            continue
        yield _due(state, name, target, table)


def planned_tables(state: JobState, name: str) -> Iterator[Due]:
    """Yield the tables that a branch's unfinished run writes and no committed run has written, outputs first.

    Such a table has publications only if the ledger has lost the commit of a run.
    """
    branch = state.branch(name)
    planned = branch.pending.binding.tables if branch.pending else {}
    for target in sorted(planned.keys() - branch.tables.keys(), key=_outputs_first):
        yield _due(state, name, target, planned[target])


def _outputs_first(target: str) -> tuple[bool, str]:
    return not target.startswith(OUTPUT), target


def _due(state: JobState, name: str, target: str, table: TableSpec) -> Due:
    is_own = target.startswith(OUTPUT)
    publications = state.branch(name).publications if is_own else state.shared(table.path)
    return Due(target, table, publications, state.restart(name, target, table.path))


def was_prepared(state: JobState, due: Due) -> bool:
    """Return whether a committed run has written a table. Such a table was created; if it is missing now, it was lost."""
    return any(
        (table := run.spec.binding.tables.get(due.target)) is not None and table.path == due.table.path
        for run in state.committed
    )


def missing(due: Due, published: int) -> range:
    """Return the ordinals of the publications that a table lacks. Those before a restart are left out.

    ``published``: the ordinal of the last publication that the table has from the current publication epoch; 0 if none.
    """
    return range(max(published + 1, due.restart.ordinal, 1), len(due.publications) + 1)


def net(publications: Sequence[Publication]) -> Publication:
    """Combine several publications into one, which adds only the runs that still have rows after the last of them."""
    runs: dict[int, CommittedRun] = {}
    for publication in publications:
        for run in publication.removes:
            runs.pop(run.spec.run, None)
        runs |= {run.spec.run: run for run in publication.adds}
    return Publication(adds=tuple(runs.values()))


def publication_id(ledger: str, job: str, target: str, epoch: int = 1) -> str:
    """Return the application id under which a job publishes a target. Republishing starts a new publication epoch.

    ``ledger``: the identity of the job's ledger. A ledger that was deleted and created again publishes everything again (ADR-75).
    """
    return f"rewindow.pub/{ledger}/{job}/{target}/{epoch}"


def reset_id(ledger: str) -> str:
    """Return the application id of the commit that empties a table after a RESET. ``ledger``: the identity that RESET began."""
    return f"rewindow.reset/{ledger}"


def log_id(ledger: str, feed: str, generation: int) -> str:
    """Return the application id under which a feed's landings are published to its logs."""
    return f"rewindow.log/{ledger}/{feed}/g{generation}"


def quarantine_id(ledger: str, feed: str, generation: int) -> str:
    """Return the application id under which a feed's rejected rows are published to the quarantine."""
    return f"rewindow.quarantine/{ledger}/{feed}/g{generation}"


def unknown_rows(table: str, job: str, *, fix: str) -> CheckpointError:
    """Return the error of a table with rows that no publication of the job's ledger added."""
    return CheckpointError(
        "table-rows-of-no-ledger",
        "{table} has rows that the ledger of job {job!r} did not publish: they are of a ledger that was "
        "deleted, or something else wrote them. Restore that ledger from a copy, name another table, or "
        "{fix}",
        table=table,
        job=job,
        fix=fix,
    )


def unknown_landings(
    table: str,
    feed: str,
    *,
    fix: str = "move that table away (its folder out of the warehouse, or rename it in the catalog)",
) -> CheckpointError:
    """Return the error of a log or quarantine with rows that no landing of the feed's ledger added.

    The rows may be gone from the source, so ``fix`` must not delete them.
    """
    return CheckpointError(
        "log-rows-of-no-ledger",
        "{table} has rows that the landing ledger of feed {feed!r} did not publish: they are of a ledger "
        "that was deleted. Restore that ledger from a copy, or {fix} and land again: `rewindow land {feed}`",
        table=table,
        feed=feed,
        fix=fix,
    )


def older_ledger(table: str, job: str, published: int, named: int) -> CheckpointError:
    """Return the error of a table that has more publications than the ledger of its job names."""
    return CheckpointError(
        "job-ledger-behind-tables",
        "{table} has {published} publications, but the ledger of {job!r} names {known}: an older copy of the ledger was "
        "restored, or its newest commit is lost. Restore the newest copy, or start over: `rewindow reset {job}`",
        table=table,
        published=published,
        job=job,
        known=named,
    )


def due_rows(due: Due, published: int) -> Counter[int]:
    """Return how many rows of each run a table has after its first ``published`` publications."""
    # Before each run, the rows of outputs are counted. Because of the stored counts, this need not go through all publications.
    is_output = due.target.startswith(OUTPUT)
    stored, later = _stored(due.publications, published) if is_output else (None, due.publications[:published])
    rows = Counter(stored.rows(due.target) if stored else {})
    for publication in later:
        for run in publication.removes:
            rows.pop(run.spec.run, None)
        for run in publication.adds:
            if added := run.commit.rows_in(due.target):
                rows[run.spec.run] = added
    return rows


def due_attempts(due: Due, published: int) -> frozenset[str]:
    """Return the ids of the attempts that wrote the rows which a table has after its first ``published`` publications."""
    return _attempts(*_stored(due.publications, published))


def published_attempts(publications: Sequence[Publication]) -> frozenset[str]:
    """Return the ids of the attempts that wrote the rows which a table has after its last publication."""
    return _attempts(*_stored(publications, len(publications)))


def _attempts(stored: StoredPublications | None, later: Iterable[Publication]) -> frozenset[str]:
    attempts = stored.attempts() if stored else {}
    for publication in later:
        for run in publication.removes:
            attempts.pop(run.spec.run, None)
        attempts |= {run.spec.run: run.commit.attempt for run in publication.adds}
    return frozenset(attempts.values())


def _stored(
    publications: Sequence[Publication], published: int
) -> tuple[StoredPublications | None, Sequence[Publication]]:
    """Split the first ``published`` publications into those with a stored net effect, if any, and the later ones."""
    head = publications.head if isinstance(publications, History) else ()
    if isinstance(head, StoredPublications) and len(head) <= published:
        return head, publications[len(head) : published]
    return None, publications[:published]


def changes_rows(publication: Publication, target: str) -> bool:
    """Return whether a publication adds or removes rows of a target."""
    runs = (*publication.adds, *publication.removes)
    return any((total := run.commit.targets.get(target)) is not None and total.rows > 0 for run in runs)
