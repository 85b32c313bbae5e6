"""A job with expectations, its runs and what they leave, for the tests of expectations."""

from __future__ import annotations

from rewindow.tables.delta.table_rows import read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import Answer, Bench

OUTPUTS = "  totals: {table: alerts.totals}\n"


def expecting(bench: Bench, *items: str) -> Bench:
    """Write expectations into the job's file."""
    listed = "".join(f"      - {item}\n" for item in items)
    bench.edit("conf/jobs/counts.yaml", OUTPUTS, f"  totals:\n    table: alerts.totals\n    expect:\n{listed}")
    return bench


def replayed(bench: Bench, code: int, *more: str) -> Answer:
    """Land and run, which ends with this exit code."""
    bench.done("land activity")
    answer = bench.run("run", "counts", *more)
    assert answer.code == code, answer.out + answer.err
    return answer


def table(bench: Bench, name: str):
    return read_rows(str(bench.warehouse / name))


def state(bench: Bench):
    return DeltaTables(str(bench.warehouse)).state("counts")


NOTHING_IS_NEW = "{rows: {max: 0}, on_fail: %s}"
