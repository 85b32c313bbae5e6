"""Metrics whose files are gone never block a job: they are computed again, or left out if no branch needs their runs."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from rewindow.app.watch import Watch
from tests.bad_input.scene import MODULE, SCORE, Bench, copy_of, goes_on


class KilledError(BaseException):
    """Stands for a kill."""


def lose_metrics(bench: Bench) -> None:
    for file in (bench.warehouse / "rewindow/metrics").glob("*.parquet"):
        file.unlink()


def promote(bench: Bench, branch: str, grace: str) -> None:
    bench.write("bench_job.py", MODULE.format(score=SCORE).replace('grace="5m"', f'grace="{grace}"'))
    bench.done(f"backfill counts --from 1 --branch {branch}", f"promote counts {branch}")


def test_metrics_of_runs_that_a_promotion_replaced_are_left_out(bench: Bench) -> None:
    promote(bench, "fix", "6m")
    lose_metrics(bench)
    assert bench.run("run", "counts").code == 74
    assert bench.json("republish counts")["left_out"] == {"metrics": ["main/1", "main/2"]}
    assert bench.done("republish counts").out == "The tables of counts are intact.\n"
    goes_on(bench)


def test_a_replaced_branch_with_other_code_is_named_with_the_way_past_it(bench: Bench) -> None:
    promote(bench, "wrong", "9m")
    promote(bench, "right", "6m")
    lose_metrics(bench)
    refusal = bench.refuses("republish counts", "replayed-code-differs", run="wrong/1")
    assert "`rewindow branch drop counts wrong`" in refusal.message
    bench.done("branch drop counts wrong")
    assert set(bench.json("republish counts")["left_out"]["metrics"]) >= {"wrong/1"}
    goes_on(bench)


def test_a_republication_that_dies_before_any_step_is_finished_by_the_next(bench: Bench, tmp_path: Path) -> None:
    promote(bench, "fix", "6m")
    lose_metrics(bench)
    for stop in count(1):
        copy = copy_of(bench, tmp_path / f"stop-{stop}")
        if not _dies(copy, stop):
            break
        copy.done("republish counts")
        assert copy.done("republish counts").out == "The tables of counts are intact.\n"
    assert stop > 4


def _dies(bench: Bench, stop: int) -> bool:
    """Kill `republish` before its step number ``stop``. Return False if it has fewer."""
    steps = count(1)

    def dying(_watch: Watch, _name: str) -> None:
        if next(steps) == stop:
            raise KilledError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Watch, "__call__", dying)
        try:
            bench.run("republish", "counts")
        except KilledError:
            return True
    return False
