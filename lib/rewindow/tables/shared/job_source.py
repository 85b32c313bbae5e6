"""Another job's output as a source: which of its epochs are new, and the watermark of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewindow.contracts.ingest import LogSpec, ProducedEpoch
from rewindow.control.ingest.landings import GENERATION, LANDING
from rewindow.control.plan.branches import CommittedRun
from rewindow.control.plan.spec import MAIN, OUTPUT, TableSpec
from rewindow.errors import SourceError
from rewindow.streams.record import UNKNOWN
from rewindow.tables.shared.warehouse import Warehouse


def new_epochs(
    tables: Warehouse, spec: LogSpec, position: Mapping[str, Any] | None
) -> tuple[TableSpec, tuple[ProducedEpoch, ...]]:
    """Return the table of a job's output and its epochs that are not landed. First publish what is committed."""
    job, _, output = spec.source.name.partition(":")
    state = tables.state(job)
    for _step in tables.publish(job, state, MAIN):
        pass
    branch = state.branch(MAIN)
    runs = branch.published_runs
    if branch.runs and not runs:
        message = (
            f"the job {job} has published no run: {branch.runs[0].spec.name} is on hold. Accept it, `rewindow publish {job} "
            "--accept`, then land again"
        )
        raise SourceError(message)
    if not runs:
        message = f"the job {job} has not run in {tables.home}: `rewindow run {job}` first"
        raise SourceError(message)
    target = branch.tables.get(OUTPUT + output)
    if target is None:
        names = ", ".join(name.removeprefix(OUTPUT) for name in branch.tables if name.startswith(OUTPUT))
        message = f"the job {job} has no output {output!r}: it has {names}"
        raise SourceError(message)
    epochs = _epochs(tables, runs, state.ledger)
    landed = 0
    if position is not None:
        landed = position["epoch"]
        _check_same_run(job, position, epochs)
    return target, tuple(epoch for epoch in epochs if epoch.number > landed)


def _epochs(tables: Warehouse, runs: Sequence[CommittedRun], ledger: str) -> list[ProducedEpoch]:
    watermarks: dict[tuple[str, int], dict[int, int]] = {}
    epochs: list[ProducedEpoch] = []
    for run in runs:
        spec = run.spec
        feed = (spec.binding.feed, spec.input.generation)
        if feed not in watermarks:
            watermarks[feed] = _watermarks(tables, *feed)
        epochs += [ProducedEpoch(number, watermarks[feed][number], spec.run, ledger) for number in spec.epochs]
        if spec.final:
            last = epochs[-1].watermark_ms if epochs else UNKNOWN
            epochs.append(ProducedEpoch(spec.input.last + 1, last, spec.run, ledger))
    return epochs


def _watermarks(tables: Warehouse, feed: str, generation: int) -> dict[int, int]:
    """Return the watermark of each landing in one generation of a feed."""
    found: dict[int, int] = {}
    for row in tables.feed_rows(feed):
        if row.kind == GENERATION:
            if row.body["generation"] > generation:
                break
            found = {number: mark for number, mark in found.items() if number <= row.body["kept"]}
        elif row.kind == LANDING:
            found[row.body["landing"]] = row.body["watermark"]
    return found


def _check_same_run(job: str, position: Mapping[str, Any], epochs: Sequence[ProducedEpoch]) -> None:
    made_by = {epoch.number: (epoch.run, epoch.ledger) for epoch in epochs}
    if made_by.get(position["epoch"]) != (position["run"], position["ledger"]):
        message = (
            f"epoch {position['epoch']} of the job {job} was landed from a run that has been rewound, reset or replaced by a "
            "promoted branch since. Land its output again: `rewindow land FEED --new-generation`. With `--keep N`, landings up "
            "to N stay as they are"
        )
        raise SourceError(message)
