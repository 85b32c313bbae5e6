"""`gc --dry-run` names what `gc` then deletes, also what its own steps free."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow.app.maintenance import JobMaintenance
from rewindow.app.open_project import OpenProject
from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import Bench, hour

pytestmark = pytest.mark.usefixtures("in_process")


def collected(bench: Bench, *words: str) -> dict[str, Any]:
    """Return what `gc` without a retention prints of the job."""
    values = bench.json(" ".join(["gc counts --keep 0s", *words]))["counts"]
    del values["into"]
    return values | {"deleted": sorted(item["path"] for item in values["deleted"])}


def check(bench: Bench) -> dict[str, Any]:
    """Check that the dry run says what `gc` does, and return it."""
    expected, before = collected(bench, "--dry-run"), bench.files()
    assert bench.files() == before
    assert collected(bench) == expected
    return expected


def test_files_of_runs_that_gc_forgets_are_named(bench: Bench) -> None:
    for number in range(2, 6):
        bench.rows(f"h{number}", hour(number))
        bench.done("land activity", "run counts")
    bench.done("rewind counts --to main/3")
    done = check(bench)
    assert done["forgotten"] == 3
    assert sum("/state/" in path for path in done["deleted"]) == 6
    assert check(bench)["deleted"] == []


def test_reports_of_attempts_that_did_not_finish_are_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.done("land activity")

    def interrupt(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(DeltaTables, "audit", interrupt)
        assert bench.run("run", "counts").code == 130
    bench.code("def score(row):\n    return row.x * 3\n")
    bench.done("run counts --replan")
    done = check(bench)
    assert done["reports"] == 1
    assert any("/journal/" in path for path in done["deleted"])


def test_runs_that_a_snapshot_replaces_are_counted(bench: Bench) -> None:
    for number in range(2, 6):
        bench.rows(f"h{number}", hour(number))
        bench.done("land activity", "run counts")
    gc = JobMaintenance(OpenProject.open(bench.root), "counts")
    with bench.code_is_imported():
        expected, done = gc.would_collect(0, every=3), gc.collect(0, every=3)
    assert (expected.snapshots, expected.forgotten) == (done.snapshots, done.forgotten) == (["main/6"], done.forgotten)
    assert {item.path for item in expected.deleted} == {item.path for item in done.deleted} != set()
