"""A long history costs no more than the reading of its ledger."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from rewindow.app.open_project import OpenProject
from tests.bad_input.scene import Bench, copy_of, without_spark
from tests.report.synthetic import prolong

RUNS = 300


@pytest.fixture(scope="module")
def long_history(two_hours: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    root = tmp_path_factory.mktemp("long")
    with without_spark():
        bench = copy_of(two_hours, root / "project")
        prolong(bench.warehouse, "activity", "counts", RUNS, journals=0)
        yield bench


def test_a_ledger_is_read_without_collections_of_garbage(long_history: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewindow.app.open_target._MANY", 0)  # as if the ledger were long
    tables, seen = OpenProject.open(long_history.root).tables, []

    def collected(phase: str, _info: dict[str, int]) -> None:
        seen.append(phase)

    assert gc.isenabled()
    gc.callbacks.append(collected)
    try:
        gc.collect(0)
        assert seen
        seen.clear()
        state = tables.state("counts")
        during = list(seen)
    finally:
        gc.callbacks.remove(collected)
    assert (len(state.committed), during) == (RUNS, [])
    assert gc.isenabled()


def test_commands_load_no_engine_until_they_need_one() -> None:
    code = "import sys, rewindow.app.cli.entry; print(*(m for m in sys.modules if m.startswith('rewindow.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded: Any = done.stdout.split()
    slow = (
        "rewindow.engine.worker.task_execution",
        "rewindow.engine.worker.vectorized",
        "rewindow.testing.transcript",
    )
    assert [one for one in loaded if one.startswith(slow)] == []
