from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rewindow.contracts.staged_files import TaskReport
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.spec import RunSpec
from rewindow.errors import InvariantError, StorageError
from rewindow.tables.delta.journal import audit_files
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.audit import audit_counts, consumed, totals
from tests.control.ledgers import a_feed, planned, run_rows
from tests.refusals import containing, refused
from tests.tables.scene import JOB, land, machine, spoil
from tests.tables.test_tables import staged


def reports(spec: RunSpec, feed: Feed) -> list[TaskReport]:
    """Return the reports of a correct run over these epochs."""
    return [TaskReport(0, p, (), {}, (), {"events": 10 * len(spec.epochs)}) for p in range(feed.definition.partitions)]


def test_a_right_run_passes():
    rows = run_rows([], "a", through_landing=1)
    spec = planned(rows, "b")
    audit_counts(spec, a_feed(), reports(spec, a_feed()))
    final = planned(run_rows([], "a"), "b", final=True)
    audit_counts(final, a_feed(), reports(final, a_feed()))


@pytest.mark.parametrize("wrong", ["missing", "doubled", "too few", "too many"])
def test_what_was_lost_or_doubled_is_found(wrong):
    spec = planned([], "a")
    made = reports(spec, a_feed())
    if wrong == "missing":
        made = made[1:]
    elif wrong == "doubled":
        made = [*made, made[0]]
    else:
        made[0] = replace(made[0], consumed={"events": 29 if wrong == "too few" else 31})
    with pytest.raises(InvariantError, match="Nothing was committed"):
        audit_counts(spec, a_feed(), made)


def test_what_was_sent_to_an_internal_log_must_arrive(tmp_path):
    spec = planned([], "a")
    two = replace(spec, binding=replace(spec.binding, topology=[{"nodes": []}, {"nodes": []}]))
    sent = [
        replace(staged(str(tmp_path), "x", 3, 0), target="internal/by-user", partition_values={"_partition": "0"}),
        replace(staged(str(tmp_path), "y", 4, 1), target="internal/by-user", partition_values={"_partition": "1"}),
    ]
    first = reports(spec, a_feed())
    first[0] = replace(first[0], files=tuple(sent))
    second = [TaskReport(1, p, (), {}, (), {"by-user": taken}) for p, taken in enumerate([3, 4])]
    audit_counts(two, a_feed(), [*first, *second])
    with refused("task-records-miscounted", topic="by-user", partition=1, taken=5, due=4):
        audit_counts(two, a_feed(), [*first, second[0], replace(second[1], consumed={"by-user": 5})])


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda file: file.unlink(), "is gone"),
        (lambda file: file.write_bytes(file.read_bytes()[:-1]), "bytes, not"),
        (lambda file: spoil(file, 30), "other bytes than were written"),
        (lambda file: spoil(file, file.stat().st_size - 2), "other bytes than were written"),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_named(tmp_path, harm, message):
    made = [TaskReport(0, 0, tuple(staged(str(tmp_path), name) for name in "abc"), {}, (), {})]
    roots = {"output/x": str(tmp_path)}
    audit_files(made, roots)
    harm(tmp_path / "partition=0" / "b.parquet")
    with pytest.raises(StorageError, match=rf"b\.parquet.*({message})"):
        audit_files(made, roots)


def test_a_manifest_with_the_wrong_count_is_found(tmp_path):
    file = staged(str(tmp_path), "a")
    for wrong in (replace(file, rows=4), replace(file, stats={"numRecords": 2})):
        with refused("staged-file-missing", fault=containing("rows, not")):
            audit_files([TaskReport(0, 0, (wrong,), {}, (), {})], {"output/x": str(tmp_path)})


def test_totals_do_not_depend_on_the_cut(tmp_path):
    file = replace(staged(str(tmp_path), "a"), rows_digest="0" * 15 + "3" + "f" * 16)
    other = replace(file, rows_digest="0" * 15 + "4" + "0" * 15 + "2")
    made = [
        TaskReport(0, 0, (file,), {}, (), {"events": 1}),
        TaskReport(0, 1, (other, replace(other, target="metrics")), {}, (), {"events": 2}),
    ]
    found = totals(made)
    assert found["output/x"].digest == "0" * 15 + "7" + "0" * 15 + "1"
    assert (found["output/x"].rows, found["output/x"].files) == (6, 2)
    assert list(found) == ["metrics", "output/x"]
    assert consumed(made) == {"events": 3}


def test_a_damaged_attempt_is_never_committed(tmp_path):
    warehouse = str(tmp_path)
    land(warehouse)
    run = machine(warehouse, "unlucky")
    for step in run:
        if step == "audit":
            break
    (damaged,) = list(Path(warehouse, "alerts", "totals").glob("*.parquet"))[:1]
    spoil(damaged)
    with pytest.raises(StorageError):
        next(run)
    state = DeltaTables(warehouse).state(JOB)
    assert state.committed == ()
    assert state.branch("main").pending is not None
