"""Branches whose names differ only in case would share a table on a disk that ignores case. Without Spark."""

from __future__ import annotations

from tests.bad_input.scene import Bench


def test_a_branch_that_differs_only_in_case_from_another_is_refused(bench: Bench) -> None:
    bench.done("run counts --branch Fix")
    _refused(bench, "run counts --branch fix", "Fix")
    bench.done("branch drop counts Fix")
    _refused(bench, "backfill counts --from 1 --branch FIX", "Fix")
    _refused(bench, "run counts --branch Main", "main")
    bench.done("run counts --branch fix2")


def _refused(bench: Bench, line: str, other: str) -> None:
    decided = bench.decided()
    bench.refuses(line, "branch-name-differs-in-case", other=other)
    assert bench.decided() == decided
    assert not [*bench.warehouse.glob(f"alerts/totals__{line.rsplit(maxsplit=1)[-1]}")]
