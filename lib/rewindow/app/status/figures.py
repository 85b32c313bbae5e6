"""The figures of a job's branch, from its ledger, its feed's ledger, and the reports of its last runs.

Each task report is a file, so only those of the runs over which shares are taken are read. Growth is what the ledger says
was written: no folder is listed for it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from rewindow.app.listing import Entry, Status
from rewindow.app.status.feeds import age_ms
from rewindow.control.plan.branches import Branch, JobState
from rewindow.control.plan.stored_runs import sizes_of
from rewindow.report.drops import LANDING, drops
from rewindow.report.history import progress
from rewindow.report.material import Material, records_of
from rewindow.report.silent import silent_partitions
from rewindow.streams.metrics import DROPS
from rewindow.streams.record import known_time

KINDS = tuple(DROPS.values())


def progress_figures(entry: Entry, branch: Branch | None, now_ms: int) -> dict[str, Any]:
    """Return how far a branch is."""
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


def lag_figures(found: Material) -> dict[str, Any]:
    """Return what waits for a branch."""
    known = progress(found)
    return {"waiting_records": known.waiting_records, "held": sum(one.records for one in known.held)}


def silent_figures(found: Material, *, will_follow: bool) -> dict[str, Any]:
    """Return the results that wait for silent partitions, by node. ``will_follow``: see `silent_partitions`."""
    return {"silent": [one.as_json() for one in silent_partitions(found, will_follow=will_follow)]}


def dropped_figures(found: Material) -> dict[str, Any]:
    """Return the dropped records of the last runs by kind, and their shares of the records; None without records.

    Late, skipped and expired records are those of the node that drops most, because several nodes may drop the same one. In
    a node whose windows overlap, a record counts once for each window that it is late for: there, the share is a bound.
    """
    records = sum(records_of(run) for run in found.runs)
    by_location: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    dropped = drops(found)
    for drop in dropped:
        by_location[drop.kind][drop.where] += drop.records
    counts = {kind: max(locations.values(), default=0) for kind, locations in by_location.items()}
    counts["quarantined"] = by_location["quarantined"].total()
    refused = sum(one.records for one in dropped if one.reason == LANDING)
    figures: dict[str, Any] = {"over_runs": len(found.runs), "records": records}
    for kind, count in counts.items():
        whole = records + (refused if kind == "quarantined" else 0)
        figures |= {kind: count, f"{kind}_share": min(1.0, count / whole) if whole else None}
    return figures


def growth_figures(state: JobState, branch: Branch, *, has_files: bool) -> dict[str, Any]:
    """Return what state and journal have grown to, over all branches, and how many runs a restore reads.

    ``has_files``: whether they are files. In a catalog they are rows of one table, whose files are not theirs: None.
    """
    written = [*sizes_of(state)]
    kept = [one for one in written if one.run not in state.forgotten]
    journal = [one.journal for one in written]
    files, size = sum(one.files for one in kept), sum(one.bytes for one in kept)
    all_runs, head = len(state.committed), branch.head
    return {
        "state_files": files if has_files else None,
        "state_bytes": size,
        "journal_files": len(journal) if has_files else None,
        "journal_bytes": sum(journal),
        "files_per_run": round((files + len(journal)) / all_runs, 2) if all_runs and has_files else None,
        "bytes_per_run": round((size + sum(journal)) / all_runs) if all_runs else None,
        "restore_runs": len(state.basis(head.spec.run)) if head and head.spec.binding.stores else 0,
    }
