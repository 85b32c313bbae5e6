"""Another job's output as a source: its epochs are what arrives, one landing each, with the watermark of the epoch.

Only the published branch counts. A producer whose landed epochs are no longer the same runs' is another source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from rewindow.contracts.ingest import LogSpec, Piece, ProducedEpoch, SourceLook
from rewindow.control.ingest.landings import GENERATION, LANDING
from rewindow.control.plan.branches import CommittedRun
from rewindow.control.plan.spec import MAIN, OUTPUT, TableSpec
from rewindow.errors import SourceError
from rewindow.streams.record import UNKNOWN
from rewindow.tables.delta.commit import open_table, table_path
from rewindow.tables.delta.features import check_writable
from rewindow.tables.delta.files import Folder
from rewindow.tables.delta.foreign_log import full_path
from rewindow.tables.delta.warehouse import DeltaTables

JOB = "job"
"""The kind of position that such sources have: the last epoch that is landed, and the run that made it."""


def look_at_output(warehouse: str, spec: LogSpec, position: Mapping[str, Any] | None) -> SourceLook:
    """Return a job's output as it is now, against the position that is landed (None: nothing is).

    Raises `SourceError` (66) if the job never ran, has no such output, or was taken back behind what is landed.
    """
    target, epochs = new_epochs(DeltaTables(warehouse), spec, position)
    fresh, schema = _files(table_path(warehouse, target.path), position["epoch"] if position else 0)
    return SourceLook({}, fresh, schema=schema, epochs=epochs)


def new_epochs(
    tables: DeltaTables, spec: LogSpec, position: Mapping[str, Any] | None
) -> tuple[TableSpec, tuple[ProducedEpoch, ...]]:
    """Return the table of a job's output and the epochs that are not landed. What is committed is published first."""
    job, _, output = spec.source.name.partition(":")
    state = tables.state(job)
    for _step in tables.publish(job, state, MAIN):
        pass
    branch = state.branch(MAIN)
    runs = branch.runs
    if not runs:
        message = f"the job {job} has not run in {tables.home}: `rewindow run {job}` first"
        raise SourceError(message)
    target = branch.tables.get(OUTPUT + output)
    if target is None:
        names = ", ".join(name.removeprefix(OUTPUT) for name in branch.tables if name.startswith(OUTPUT))
        message = f"the job {job} has no output {output!r}: it has {names}"
        raise SourceError(message)
    epochs = _epochs(tables, runs)
    landed = 0
    if position is not None:
        landed = position["epoch"]
        _check_same_run(job, position, epochs)
    return target, tuple(epoch for epoch in epochs if epoch.number > landed)


def _epochs(tables: DeltaTables, runs: Sequence[CommittedRun]) -> list[ProducedEpoch]:
    watermarks: dict[tuple[str, int], dict[int, int]] = {}
    epochs: list[ProducedEpoch] = []
    for run in runs:
        spec = run.spec
        feed = (spec.feed, spec.generation)
        if feed not in watermarks:
            watermarks[feed] = _watermarks(tables, *feed)
        epochs += [ProducedEpoch(number, watermarks[feed][number], spec.run) for number in spec.epochs]
        if spec.final:
            last = epochs[-1].watermark_ms if epochs else UNKNOWN
            epochs.append(ProducedEpoch(spec.last_epoch + 1, last, spec.run))
    return epochs


def _watermarks(tables: DeltaTables, feed: str, generation: int) -> dict[int, int]:
    """Return the watermark of each landing of a feed, as one of its generations has them."""
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
    made_by = {epoch.number: epoch.run for epoch in epochs}
    if made_by.get(position["epoch"]) != position["run"]:
        message = (
            f"epoch {position['epoch']} of the job {job}, which was landed, is no longer that of run {position['run']}: "
            "it was rewound, or a branch was promoted. Land again: `rewindow land FEED --new-generation [--keep N]`"
        )
        raise SourceError(message)


def _files(path: str, landed: int) -> tuple[tuple[Piece, ...], str]:
    """Return a table's files and schema. Those with epochs that are not landed yet are about to be read: see that they can."""
    table = open_table(path)
    if table is None:
        message = f"the table {path} is gone: run its job again, which makes it anew"
        raise SourceError(message)
    check_writable(path, table)
    actions = pa.table(table.get_add_actions(flatten=True)).to_pydict()
    paths = actions["path"]
    folder = Folder(path)
    for name, last in zip(paths, actions.get("max._epoch", [None] * len(paths)), strict=True):
        if last is None or last > landed:
            folder.check(unquote(name))  # Spark itself checks pages, and neither their headers nor the footer
    return tuple(Piece(full_path(path, name)) for name in sorted(paths)), table.schema().to_json()
