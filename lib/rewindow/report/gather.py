"""Gather a report from its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rewindow.control.health.inputs import Inputs
from rewindow.control.health.job_health import JobHealth
from rewindow.control.health.lost_records import drops, lateness
from rewindow.control.health.phrases import command_words
from rewindow.control.health.waiting_results import open_windows
from rewindow.control.plan.spec import OUTPUT
from rewindow.report.expectations import expectations
from rewindow.report.facts import BranchDiff, Digest, Outlook, Report, Verification
from rewindow.report.figures import changes, clocks, cost, progress, replaced, run_figures, schedules, store_sizes
from rewindow.report.verdict import verdict


def gather(
    inputs: Inputs,
    health: JobHealth,
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
    spec, commit = inputs.head.spec, inputs.head.commit
    done, dropped, windows = progress(inputs, health), drops(inputs), open_windows(inputs)
    expected = expectations(inputs)
    said = verdict(
        command_words(spec.job, inputs.branch.name),
        done,
        outlook,
        verification,
        dropped,
        windows,
        health,
        is_newest=inputs.is_newest,
        detailed_runs=len(inputs.known_reports),
        diff=diff,
        expected=expected,
    )
    return Report(
        job=spec.job,
        branch=inputs.branch.name,
        feed=spec.binding.feed,
        selection=selection,
        made_at_ms=made_at_ms,
        version=version,
        verdict=said,
        progress=done,
        outlook=outlook,
        verification=verification,
        runs=list(run_figures(inputs)),
        detailed_runs=len(inputs.known_reports),
        drops=dropped,
        lateness=lateness(inputs),
        open_windows=windows,
        clocks=clocks(inputs),
        schedules=schedules(inputs),
        stores=store_sizes(inputs),
        changes=changes(inputs),
        cost=cost(inputs, done.waiting_records),
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
        replaced=replaced(inputs),
    )


def as_json(report: Report) -> Mapping[str, Any]:
    """Return a report as JSON values, with nulls for what is unknown."""
    return asdict(report)
