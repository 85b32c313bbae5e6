"""Gather a report from its material."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rewindow.control.plan.spec import OUTPUT
from rewindow.report.changes import changes
from rewindow.report.cost import cost
from rewindow.report.drops import drops, lateness
from rewindow.report.expectations import expectations
from rewindow.report.facts import BranchDiff, Outlook, Report, Verification
from rewindow.report.figures import Digest
from rewindow.report.history import clocks, progress, run_figures, schedules, store_sizes
from rewindow.report.material import Material
from rewindow.report.replaced import replaced
from rewindow.report.silent import silent_partitions
from rewindow.report.text import asked
from rewindow.report.verdict import verdict
from rewindow.report.windows import open_windows


def gather(
    material: Material,
    *,
    ledger: str,
    selection: str,
    made_at_ms: int,
    version: str,
    outlook: Outlook,
    verification: Verification,
    diff: BranchDiff | None = None,
) -> Report:
    """Return the report on a branch, or on the runs of it that are selected."""
    spec, commit = material.head.spec, material.head.commit
    done, dropped, windows = progress(material), drops(material), open_windows(material)
    expected = expectations(material)
    said = verdict(
        asked(spec.job, material.branch.name),
        done,
        outlook,
        verification,
        dropped,
        windows,
        silent_partitions(material),
        is_newest=material.is_newest,
        detailed_runs=len(material.reports),
        diff=diff,
        expected=expected,
    )
    return Report(
        job=spec.job,
        branch=material.branch.name,
        feed=spec.binding.feed,
        selection=selection,
        made_at_ms=made_at_ms,
        version=version,
        verdict=said,
        progress=done,
        outlook=outlook,
        verification=verification,
        runs=list(run_figures(material)),
        detailed_runs=len(material.reports),
        drops=dropped,
        lateness=lateness(material),
        open_windows=windows,
        clocks=clocks(material),
        schedules=schedules(material),
        stores=store_sizes(material),
        changes=changes(material),
        cost=cost(material, done.waiting_records),
        chain=commit.chain,
        ledger=ledger,
        digests=[
            Digest(target, spec.binding.tables[target].path, total.rows, total.digest)
            for target, total in sorted(
                commit.targets.items(), key=lambda item: (not item[0].startswith(OUTPUT), item[0])
            )
            if target in spec.binding.tables
        ],
        diff=diff,
        expectations=expected,
        replaced=replaced(material),
    )


def as_json(report: Report) -> Mapping[str, Any]:
    """Return a report as JSON values, with nulls for what is unknown."""
    return asdict(report)
