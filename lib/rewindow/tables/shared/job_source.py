"""Another job's output as a source: which of its epochs are new, and the watermark of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from rewindow.contracts.ingest import LogSpec
from rewindow.contracts.produced_epochs import ProducedEpoch
from rewindow.control.ingest.landings import GENERATION, LANDING
from rewindow.control.ingest.progress import landing_bodies
from rewindow.control.plan.branches import CommittedRun, JobState
from rewindow.control.plan.spec import MAIN, OUTPUT, TableSpec
from rewindow.errors import LandedRunError, SourceError, StorageError
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.schema import has_bounds
from rewindow.streams.watermark_lags import output_lags
from rewindow.tables.shared.warehouse import Warehouse

MadeBy = Mapping[int, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class NewEpochs:
    """A job's output: its table, its epochs that are not landed, and the run on hold behind which there are more."""

    job: str
    state: JobState
    target: str
    table: TableSpec
    epochs: tuple[ProducedEpoch, ...]
    on_hold: str

    @property
    def runs(self) -> list[CommittedRun]:
        """The runs that made these epochs."""
        made = {epoch.run for epoch in self.epochs}
        return [run for run in self.state.branch(MAIN).published_runs if run.spec.run in made]

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns of the output without the bounds of windows; none if the last run was made by earlier code."""
        keys = self.runs[-1].spec.binding.keys.get(self.target, ()) if self.epochs else ()
        return keys[:-2] if has_bounds(keys) else keys


def altered(job: str, table: str, what: str) -> StorageError:
    """Return the error for an output of which rows that are to be landed are not those that were published."""
    message = (
        f"{table} {what}: it was altered outside rewindow (UPDATE, DELETE, RESTORE, a rewrite, deleted files), and nothing of it "
        f"was landed. Publish it again, then land again: `rewindow republish {job}`"
    )
    return StorageError(message)


def new_epochs(tables: Warehouse, spec: LogSpec, position: Mapping[str, Any] | None) -> NewEpochs:
    """Return what is new of a job's output. First publish what is committed."""
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
    epochs = _epochs(tables, runs, state.ledger, output)
    landed = 0
    if position is not None:
        landed = position["epoch"]
        _check_same_run(job, position, _made_by(runs, state.ledger))
    on_hold = next((run.spec.name for run in state.on_hold(MAIN)), "")
    new = tuple(epoch for epoch in epochs if epoch.number > landed)
    return NewEpochs(job, state, OUTPUT + output, target, new, on_hold)


def _epochs(tables: Warehouse, runs: Sequence[CommittedRun], ledger: str, output: str) -> list[ProducedEpoch]:
    """Return all epochs of some runs. The one that seals a branch holds nothing back."""
    watermarks: dict[tuple[str, int], dict[int, int]] = {}
    epochs: list[ProducedEpoch] = []
    for run in runs:
        spec = run.spec
        feed = (spec.binding.feed, spec.input.generation)
        if feed not in watermarks:
            watermarks[feed] = _watermarks(tables, *feed)
        held = output_lags(spec.binding.topology).get(output, 0)
        epochs += [ProducedEpoch(number, watermarks[feed][number], spec.run, ledger, held) for number in spec.epochs]
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


def standing_landings(tables: Warehouse, feed: str, job: str) -> tuple[int, int]:
    """Return how many of a feed's first landings hold only rows of runs that the job still has, and how many it has in all.

    The feed reads outputs of the job. Landings that only a run on hold would confirm do not count as standing.
    """
    bodies = landing_bodies(tables.feed_rows(feed))
    state = tables.state(job)
    made_by = _made_by(state.branch(MAIN).published_runs, state.ledger)

    def stands(body: Mapping[str, Any]) -> bool:
        return all(_stands(position, made_by) for position in body["positions"].values() if "run" in position)

    return sum(1 for _ in takewhile(stands, bodies)), len(bodies)


def _check_same_run(job: str, position: Mapping[str, Any], made_by: MadeBy) -> None:
    if not _stands(position, made_by):
        message = (
            f"epoch {position['epoch']} of the job {job} was landed from a run that has been rewound, reset or replaced by a "
            f"promoted branch since. Land its output again: `rewindow land FEED --new-generation`."
        )
        raise LandedRunError(message, job)


def _stands(position: Mapping[str, Any], made_by: MadeBy) -> bool:
    """Return whether the run whose epoch was landed is still one of its job's."""
    return made_by.get(position["epoch"]) == (position["run"], position["ledger"])


def _made_by(runs: Iterable[CommittedRun], ledger: str) -> dict[int, tuple[int, str]]:
    """Return the run of each epoch, by its row in a job's ledger, which is named too: a reset begins another one."""
    found: dict[int, tuple[int, str]] = {}
    for run in runs:
        last = run.spec.input.last + 1 if run.spec.final else run.spec.input.last
        found |= dict.fromkeys(range(run.spec.input.first, last + 1), (run.spec.run, ledger))
    return found
