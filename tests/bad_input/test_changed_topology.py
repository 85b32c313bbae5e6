"""A topology that changed is refused by `run` and `plan` at once, not only when new data has landed."""

from __future__ import annotations

import json

import pytest

from tests.bad_input.scene import Bench

WINDOW = 'TimeWindows.of("30m", grace="5m")'


@pytest.mark.parametrize("words", ["run counts", "plan counts", "run counts --through 1", "plan counts --through 2"])
def test_without_new_data_a_changed_topology_is_refused(bench: Bench, words: str) -> None:
    assert bench.run(*words.split()).code == 0
    bench.edit("bench_job.py", WINDOW, WINDOW.replace("30m", "60m"))
    refused = bench.run(*words.split())
    assert refused.code == 76
    assert "job 'counts' has changed since the checkpoint of run main/2" in refused.err
    bench.edit("bench_job.py", WINDOW.replace("30m", "60m"), WINDOW)
    assert bench.run(*words.split()).code == 0


def test_a_change_that_the_job_accepts_is_planned_and_shown(bench: Bench) -> None:
    bench.edit("bench_job.py", "row.x * 2", "row.x * 3")
    shown = bench.run("plan", "counts")
    assert (shown.code, "Its next run accepts that:" in shown.out) == (0, True)
    assert "score" in json.dumps(json.loads(bench.run("plan", "counts", "--json").out)["changed"])
