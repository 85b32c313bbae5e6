"""What both adapters share about source tables: their errors, and how another job's output is landed epoch by epoch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from rewindow.contracts.ingest import LogSpec, ProducedEpoch
from rewindow.contracts.source_fields import marked
from rewindow.control.ingest.feed_progress import landing_bodies
from rewindow.control.ingest.landings import GENERATION, LANDING
from rewindow.control.plan.compatibility import check_has_landings
from rewindow.control.plan.spec import MAIN, OUTPUT, TableSpec
from rewindow.errors import DataError, LandedRunError, SourceError, StorageError
from rewindow.streams.record import UNKNOWN
from rewindow.streams.serde.schema import has_bounds
from rewindow.streams.topology import output_lags

if TYPE_CHECKING:
    from rewindow.control.plan.job_state import CommittedRun, JobState
    from rewindow.tables.shared.warehouse import Warehouse


DELTA = "delta"
"""The kind of a position in a Delta table. It states the table's id, version and arrival, and the versions that were too late
for the landing."""


def missing_source(name: str) -> SourceError:
    """Return the error of a source table that does not exist."""
    return SourceError(
        "source-table-missing",
        "there is no table {source}: fix `source:`, or create the table first",
        source=name,
    )


def rows_changed(table: str, version: int, operation: str) -> DataError:
    """Return the error of a source table in which a version changed or deleted rows."""
    return DataError(
        "source-rows-changed",
        "{table}: version {version} ({operation}) changed or deleted rows, but a log is append-only. Write changes"
        " as new rows. To go on with this table, land all its present rows again: `rewindow land FEED "
        "--new-generation`",
        table=table,
        version=version,
        operation=operation,
    )


@dataclass(frozen=True, slots=True)
class NewEpochs:
    """A job's output, and those of its epochs that are published and not landed yet.

    ``on_hold``: the name of the first run on hold; an empty text if there is none. The epochs of that run and of later runs
    are not included.
    """

    job: str
    state: JobState
    target: str
    table: TableSpec
    epochs: tuple[ProducedEpoch, ...]
    on_hold: str

    @property
    def runs(self) -> list[CommittedRun]:
        """The runs that made these epochs."""
        if not self.epochs:
            return []
        made = {epoch.run for epoch in self.epochs}
        runs = self.state.branch(MAIN).published_runs
        return [run for run in runs[_at(runs, self.epochs[0].number) :] if run.spec.run in made]

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns of the output without the bounds of windows; empty if the last run does not state key columns."""
        keys = self.runs[-1].spec.binding.keys.get(self.target, ()) if self.epochs else ()
        return keys[:-2] if has_bounds(keys) else keys

    def is_newest(self, tables: Warehouse) -> bool:
        """Return whether the job's ledger has not changed since these epochs were found.

        If it has changed, another process (for example a `rewind`) may have changed the output, so its state must be read
        again.
        """
        now = tables.state(self.job)
        return (now.ledger, now.rows) == (self.state.ledger, self.state.rows)

    def marked(self, schema: str) -> str:
        """Return the schema of the table (Spark's JSON). Columns of JSON text are marked (`contracts.source_fields`)."""
        return marked(schema, [name for name, kind in self.table.columns if kind == "json"])


def output_gone(table: str) -> SourceError:
    """Return the error of an output whose table was written, but no longer exists."""
    return SourceError(
        "output-table-gone", "the table {table} is gone: run its job again, which creates it", table=table
    )


def altered(job: str, table: str, change: str) -> StorageError:
    """Return the error of an output that is to be landed, but whose rows differ from the published rows."""
    return StorageError(
        "job-output-altered",
        "{table} {change}: it was altered outside rewindow (UPDATE, DELETE, RESTORE, a rewrite, deleted "
        "files), and nothing of it was landed. Publish it again, then land again: `rewindow republish "
        "{job}`",
        table=table,
        change=change,
        job=job,
    )


def new_epochs(tables: Warehouse, spec: LogSpec, position: Mapping[str, Any] | None) -> NewEpochs:
    """Publish the committed runs of a job, and return the new epochs of its output.

    ``position``: the output's position in the last landing; None before the first landing.
    """
    job, _, output = spec.source.name.partition(":")
    state = tables.state(job)
    for _step in tables.publish(job, state, MAIN):
        pass
    branch = state.branch(MAIN)
    runs = branch.published_runs
    if branch.runs and not runs:
        raise SourceError(
            "job-has-published-nothing",
            "the job {job} has published no run: {run} is on hold. Accept it, `rewindow publish {job} "
            "--accept`, then land again",
            job=job,
            run=branch.runs[0].spec.name,
        )
    if not runs:
        raise SourceError(
            "job-never-run",
            "the job {job} has not run in {warehouse}: `rewindow run {job}` first",
            job=job,
            warehouse=tables.home,
        )
    target = branch.tables.get(OUTPUT + output)
    if target is None:
        names = ", ".join(name.removeprefix(OUTPUT) for name in branch.tables if name.startswith(OUTPUT))
        raise SourceError(
            "job-output-unknown",
            "the job {job} has no output {output!r}: it has {outputs}",
            job=job,
            output=output,
            outputs=names,
        )
    landed = 0
    if position is not None:
        landed = position["epoch"]
        _check_same_run(job, position, runs, state.ledger)
    on_hold = next((run.spec.name for run in state.on_hold(MAIN)), "")
    new = tuple(_epochs_after(landed, tables, runs, state.ledger, output))
    return NewEpochs(job, state, OUTPUT + output, target, new, on_hold)


def _epochs_after(
    landed: int, tables: Warehouse, runs: Sequence[CommittedRun], ledger: str, output: str
) -> Iterator[ProducedEpoch]:
    """Yield the epochs of ``runs`` after the epoch ``landed``. ``ledger``: the identity of the job's ledger.

    A run that ends its branch for good (`run --final`) has one epoch more, in which operators hold no rows back. Raises
    `SourceError` (66) if the feed of the job no longer has a landing of the last generation that a run has processed.
    """
    watermarks: dict[tuple[str, int], Callable[[int], int]] = {}
    for run in runs[_at(runs, landed + 1) :]:
        spec = run.spec
        feed = (spec.binding.feed, spec.input.generation)
        if feed not in watermarks:
            watermarks[feed] = _watermarks(tables, *feed)
        held = output_lags(spec.binding.topology).get(output, 0)
        if spec.input.generation >= (now := tables.feed(spec.binding.feed)).definition.generation:
            check_has_landings(run, now, tables.state(spec.job).branch(MAIN))
        for number in (epoch for epoch in spec.epochs if epoch > landed):
            yield ProducedEpoch(number, watermarks[feed](number), spec.run, ledger, held, attempt=spec.attempt.id)
        if spec.final:
            last = watermarks[feed](spec.input.last) if spec.input.last else UNKNOWN
            yield ProducedEpoch(spec.input.last + 1, last, spec.run, ledger, attempt=spec.attempt.id)


def _watermarks(tables: Warehouse, feed: str, generation: int) -> Callable[[int], int]:
    """Return a function that takes the number of a landing in a generation of a feed, and returns the landing's watermark."""
    now = tables.feed(feed)
    if now.definition.generation == generation:
        return lambda number: now.landings[number - 1].watermark_ms
    marks: dict[int, int] = {}
    for row in tables.feed_rows(feed):
        if row.kind == GENERATION:
            if row.body["generation"] > generation:
                break
            marks = {number: mark for number, mark in marks.items() if number <= row.body["kept"]}
        elif row.kind == LANDING:
            marks[row.body["landing"]] = row.body["watermark"]
    return marks.__getitem__


def standing_landings(tables: Warehouse, feed: str, job: str) -> tuple[int, int]:
    """Return the number of a feed's first landings that contain only rows of runs which the job still has, and of all landings.

    The feed reads outputs of the job. Landings with rows of a run on hold are not counted, because only published runs count.
    """
    bodies = landing_bodies(tables.feed_rows(feed))
    state = tables.state(job)
    runs = state.branch(MAIN).published_runs
    made_by = {epoch: run for run in runs for epoch in range(run.spec.input.first, _last(run) + 1)}

    def stands(body: Mapping[str, Any]) -> bool:
        positions = (position for position in body["positions"].values() if "run" in position)
        return all(_is_of(made_by.get(position["epoch"]), state.ledger, position) for position in positions)

    return sum(1 for _ in takewhile(stands, bodies)), len(bodies)


def _check_same_run(job: str, position: Mapping[str, Any], runs: Sequence[CommittedRun], ledger: str) -> None:
    index = _at(runs, position["epoch"])
    if not _is_of(runs[index] if index < len(runs) else None, ledger, position):
        raise LandedRunError(
            "landed-run-replaced",
            "epoch {epoch} of the job {job} was landed from a run that has been rewound, reset or replaced by a promoted branch "
            "since. Land its output again: `rewindow land FEED --new-generation`.",
            epoch=position["epoch"],
            job=job,
        )


def _at(runs: Sequence[CommittedRun], epoch: int) -> int:
    """Return the index of the run that contains an epoch, or else of the first run after it."""
    return bisect_left(runs, epoch, key=_last)


def _last(run: CommittedRun) -> int:
    """Return the last epoch of a run. A run that ends its branch for good has one more epoch after that of its last landing."""
    return run.spec.input.last + 1 if run.spec.final else run.spec.input.last


def _is_of(run: CommittedRun | None, ledger: str, position: Mapping[str, Any]) -> bool:
    """Return whether a position was landed from this run.

    A reset begins another ledger, so the identity of the ledger is compared. The attempt that planned the run is compared,
    too, because a ledger that was replaced by an older copy reuses the numbers of the lost runs. Positions that an older
    version recorded have no attempt.
    """
    if run is None or (run.spec.run, ledger) != (position["run"], position["ledger"]):
        return False
    return bool(position.get("attempt", run.spec.attempt.id) == run.spec.attempt.id)
