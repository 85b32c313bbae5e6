"""Names that a shell completes: jobs, feeds and targets from file names, branches and stores from the ledger in a folder.

A shell inserts everything that is printed into the line that the user types. So nothing here prints or raises an error. If
names cannot be found, none are offered. Only the target's file is read and, for names of tables, the files of the jobs. No code
of the project is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rewindow.config.load import Kind, find_project, load_job, load_target, location_of, stems
from rewindow.control.plan.job_state import JobState
from rewindow.control.plan.spec import MAIN
from rewindow.errors import visible
from rewindow.tables.shared.paths import QUARANTINE

_QUARANTINE = QUARANTINE.replace("/", ".")
"""The name by which the command `head` refers to the quarantine."""

Complete = Callable[[Any, str], list[str]]


def names(*kinds: Kind) -> Complete:
    """Return a function that completes names of files below conf/."""

    def complete(ctx: Any, incomplete: str) -> list[str]:
        return _beginning(incomplete, lambda: {name for kind in kinds for name in _stems(ctx, kind)})

    return complete


def tables(ctx: Any, incomplete: str) -> list[str]:
    """Complete the names of output tables, from the files of the jobs."""

    def found() -> Iterable[str]:
        root = _root(ctx)
        return [output.table for job in _stems(ctx, "jobs") for output in load_job(root, job).outputs.values()]

    return _beginning(incomplete, found)


def jobs_and_tables(ctx: Any, incomplete: str) -> list[str]:
    """Complete the names of jobs, of output tables, and of the quarantine."""
    return sorted(
        {*names("jobs")(ctx, incomplete), *tables(ctx, incomplete), *_beginning(incomplete, lambda: [_QUARANTINE])}
    )


def branches(ctx: Any, incomplete: str) -> list[str]:
    """Complete the branches of the job that was typed earlier in the line."""

    def found() -> set[str]:
        return {MAIN, *(branch.name for branch in _state(ctx).branches.values() if branch.is_open)}

    return _beginning(incomplete, found) or _beginning(incomplete, lambda: {MAIN})


def stores(ctx: Any, incomplete: str) -> list[str]:
    """Complete the stores of the job that was typed earlier in the line: all stores that some branch has after its last run."""

    def found() -> set[str]:
        heads = [branch.head for branch in _state(ctx).branches.values()]
        return {store for head in heads if head for store in head.spec.binding.stores}

    return _beginning(incomplete, found)


def _beginning(incomplete: str, found: Callable[[], Iterable[str]]) -> list[str]:
    with suppress(Exception):
        return sorted(name for name in found() if name.startswith(incomplete) and name == visible(name))
    return []


def _root(ctx: Any) -> Path:
    return find_project(Path(ctx.params.get("folder") or ".").absolute())


def _stems(ctx: Any, kind: Kind) -> Iterable[str]:
    return stems(_root(ctx), kind)


def _state(ctx: Any) -> JobState:
    """Return the state of the job in the command line; an empty state if the warehouse is not a local folder."""
    from rewindow.tables.delta.warehouse import DeltaTables

    root = _root(ctx)
    target = load_target(root, ctx.params.get("target") or "local")
    warehouse = location_of(root, target.warehouse)
    # A warehouse in a bucket or a catalog is not read, because reading it is too slow while somebody types.
    if "://" in warehouse or target.catalog is not None:
        return JobState()
    # If the line ends with an option without a value, click has not yet moved the arguments before it into `params`.
    return DeltaTables(warehouse).state(ctx.params["job"] or ctx.args[0])
