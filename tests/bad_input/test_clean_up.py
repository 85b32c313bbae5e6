"""What goes wrong while a run cleans up is not the run's: its rows and its exit code stay as they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rewindow.app import clean_up, open_project
from rewindow.errors import StorageError
from rewindow.tables.delta import gc
from tests.bad_input.scene import Bench, goes_on, hour
from tests.year.shortened import left_before

pytestmark = pytest.mark.usefixtures("in_process")
FULL = OSError(28, "No space left on device")


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each run clean up, and a table of few files be merged."""
    monkeypatch.setattr(open_project, "_CLEANED_EVERY", 1)


@pytest.mark.parametrize(
    "error", [StorageError("no-such", "gone"), FULL, MemoryError(), RuntimeError("panicked")], ids=repr
)
@pytest.mark.parametrize("of", ["JobGc", "FeedGc"])
def test_a_clean_up_that_fails_is_a_hint(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, of: str, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(getattr(gc, of), "garbage", fail)
    bench.done("land activity")
    ran = bench.json("run counts")
    assert ran["run"] == "main/3"
    assert ran["summary"]["hint_codes"] == ["clean-up-failed"]
    assert ran["cleaned"]["seconds"] >= 0
    monkeypatch.undo()
    bench.done("status", "verify counts")


def test_a_clean_up_without_time_leaves_the_rest_to_the_next(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(clean_up, "_MOST_S", -1)
        bench.done("land activity")
        assert bench.json("run counts")["cleaned"]["merged"] == 0
    bench.rows("h3", hour(3))
    bench.done("land activity")
    before = bench.result()
    assert bench.json("run counts")["cleaned"]["merged"] > 0
    assert bench.result().keys() == before.keys()


def test_files_that_left_a_table_stay_as_long_as_the_target_says(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "_left_before", left_before)
    bench.done("land activity")
    assert bench.json("run counts")["cleaned"]["merged"] > 0
    for file in Path(bench.warehouse).rglob("*.parquet"):
        _grow_old(file, days=3)
    logged = len(list((bench.warehouse / "logs").rglob("*.parquet")))
    _next_hour(bench, 3)
    assert len(list((bench.warehouse / "logs").rglob("*.parquet"))) > logged  # 30 days, if the target says nothing
    bench.edit("conf/targets/local.yaml", "warehouse: warehouse", "warehouse: warehouse\nkeep: 2d")
    assert bench.json("gc --dry-run")["activity"]["deleted"]  # `gc` keeps files as long as runs do
    assert not bench.json("gc --dry-run --keep 30d")["activity"]["deleted"]
    assert _next_hour(bench, 4)["cleaned"]["deleted_files"] > 0
    bench.done("status", "verify counts")


def test_a_run_forgets_no_state(bench: Bench) -> None:
    bench.edit("conf/targets/local.yaml", "warehouse: warehouse", "warehouse: warehouse\nkeep: 0s")
    goes_on(bench)
    bench.done("rewind counts --to main/1")
    goes_on(bench)


def _next_hour(bench: Bench, number: int) -> dict[str, Any]:
    bench.rows(f"h{number}", hour(number))
    bench.done("land activity")
    return bench.json("run counts")


def _grow_old(file: Path, *, days: int) -> None:
    seconds = file.stat().st_mtime - days * 86_400
    os.utime(file, (seconds, seconds))
