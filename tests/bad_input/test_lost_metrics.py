"""Metrics whose files are gone never block a job: they are computed again, or left out if no branch needs their runs."""

from __future__ import annotations

from tests.bad_input.scene import MODULE, SCORE, Bench, goes_on
from tests.refusals import fixes


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
    assert not any(bench.json("republish counts").values())
    goes_on(bench)


def test_a_replaced_branch_with_other_code_is_named_with_the_way_past_it(bench: Bench) -> None:
    promote(bench, "wrong", "9m")
    promote(bench, "right", "6m")
    lose_metrics(bench)
    (fix,) = fixes(bench.refuses("republish counts", "replayed-code-differs", run="wrong/1"))
    bench.done(fix)
    assert set(bench.json("republish counts")["left_out"]["metrics"]) >= {"wrong/1"}
    goes_on(bench)
