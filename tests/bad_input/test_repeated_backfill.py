"""A backfill that is called again: a refused one leaves nothing behind, one of changed code replaces its own branch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rewindow.app.failures import Failure
from rewindow.control.plan.spec import Attempt
from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import Bench, copy_of

FROM_1 = "backfill counts --from 1 --branch fix"
FROM_2 = "backfill counts --from 2 --branch fix"
COUNT = 'counts.suppress(until_window_closes(), name="closed")'
FILTERED = '.map_values(lambda row: score(row), name="scores").filter(lambda _key, value: value > 4, name="big")'


def branches(bench: Bench) -> dict[str, str]:
    return {one["branch"]: one["standing"] for one in bench.json("branch list counts")["branches"]}


def filter_more(bench: Bench) -> None:
    """Change the topology in a way that the store allows."""
    bench.edit("bench_job.py", '.map_values(lambda row: score(row), name="scores")', FILTERED)


def test_a_refused_backfill_leaves_no_branch_and_succeeds_with_the_changes_accepted(bench: Bench) -> None:
    filter_more(bench)
    for line in (FROM_2, FROM_2.removesuffix(" --branch fix")):
        bench.refuses(line, "job-changed-since-checkpoint", run_option="--accept-changes")
        assert branches(bench) == {"main": "open"}
    made = bench.json(f"{FROM_2} --accept-changes")
    assert (made["stands_on"], made["runs"][0]["run"], made["replaced"]) == ("main/1", "fix/2", [])
    assert branches(bench) == {"main": "open", "fix": "open"}
    (run,) = bench.json(f"{FROM_2} --accept-changes")["runs"]
    assert run["run"] is None


def test_a_backfill_of_a_landing_that_main_has_not_taken_says_so(bench: Bench) -> None:
    bench.done("land activity")
    bench.refuses("backfill counts --from 3", "backfill-begins-after-main")
    assert branches(bench) == {"main": "open"}


def test_a_backfill_repeated_with_changed_code_replaces_its_own_runs(bench: Bench, tmp_path: Path) -> None:
    before = dict(DeltaTables(str(bench.warehouse)).hashes("counts", "main"))
    filter_more(bench)
    bench.json(FROM_1)
    bench.edit("bench_job.py", "value > 4", "value > 8")
    again = bench.json(FROM_1)
    assert again["replaced"] == ["fix/1"]
    assert again["runs"][0]["epochs"] == [1, 2]
    assert bench.json("verify counts --branch fix") == {"fix/2": {}}

    at_once = copy_of(bench, tmp_path / "at_once")
    at_once.done(FROM_1.replace("fix", "other"))
    hashes = DeltaTables(str(at_once.warehouse)).hashes
    assert hashes("counts", "fix")["output/totals"] == hashes("counts", "other")["output/totals"]
    assert dict(DeltaTables(str(bench.warehouse)).hashes("counts", "main"))["output/totals"] == before["output/totals"]


def test_a_refused_replacement_keeps_the_branchs_runs(bench: Bench) -> None:
    bench.json(FROM_2)
    kept = DeltaTables(str(bench.warehouse)).hashes("counts", "fix")
    bench.edit("bench_job.py", 'TimeWindows.of("30m"', 'TimeWindows.of("20m"')
    assert bench.run(*FROM_2.split(), "--accept-changes").code == 76
    assert DeltaTables(str(bench.warehouse)).hashes("counts", "fix") == kept


def test_a_backfill_from_before_its_branchs_start_is_not_taken_for_done(bench: Bench) -> None:
    bench.json(FROM_2)
    bench.refuses(FROM_1, "branch-starts-later", branch="fix")
    assert bench.json(FROM_2)["runs"][0]["run"] is None


def test_a_replacement_does_not_fence_a_live_attempt(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.json(FROM_1)
    bench.done("land activity")
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr("rewindow.tables.delta.warehouse.DeltaTables.stage", _dies)
        assert bench.run("run", "counts", "--branch", "fix").code == 74
    filter_more(bench)

    def is_alive(_warehouse: str, _attempt: Attempt) -> bool:
        return True

    monkeypatch.setattr("rewindow.control.heartbeat.is_alive", is_alive)
    refused = bench.refuses(FROM_1, "run-being-executed")
    bench.done(advised(refused).replace("NAME", "other"))


def test_a_promotion_that_meets_a_live_attempt_names_the_command_that_takes_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.done(FROM_1, "land activity", "run counts")
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr("rewindow.tables.delta.warehouse.DeltaTables.stage", _dies)
        assert bench.run("run", "counts", "--branch", "fix").code == 74
    with monkeypatch.context() as living:
        living.setattr("rewindow.control.heartbeat.is_alive", lambda _warehouse, _attempt: True)
        bench.done(advised(bench.refuses("promote counts fix", "run-being-executed")), "promote counts fix")


def test_a_promotion_of_changed_code_names_the_command_that_accepts_it(bench: Bench) -> None:
    bench.done(FROM_1, "land activity", "run counts")
    filter_more(bench)
    refused = bench.refuses("promote counts fix", "job-changed-since-checkpoint", run_option="--accept-changes")
    bench.done(advised(refused), "promote counts fix")


def advised(failure: Failure) -> str:
    """Return the last command that a message names."""
    return re.findall(r"`rewindow ([^`]+)`", failure.message)[-1]


def _dies(*_arguments: object) -> None:
    raise OSError("died")
