"""`governed-ledger`: what a command of a catalog pays for the earlier runs of its job, with and without a stored fold.

The ledger is synthetic: runs of one landing each, with a report of a small run, written as many appends at a time. Reading it
through Spark Connect and folding it is what each command does first.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from rewindow.control.plan.job_fold import fold_row
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.planner import plan_run
from rewindow.control.plan.spec import RunRequest, RunSpec
from rewindow.tables.governed.ledger import ROWS, give_state
from rewindow.tables.governed.names import TableName
from rewindow.tables.governed.own_rows import OwnRows
from rewindow.tables.governed.own_table import REPORT, rows_of
from rewindow.tables.shared.ledger import JobStates, new_token, stored_body
from tests.bench import results
from tests.bench.governed import governed_project, project_of
from tests.bench.sections import write_section
from tests.control.ledgers import BINDING, HOUR, a_feed, an_attempt, commit_of, plan_row

HOURS = (1_000, 8_760)
_JOB = BINDING.job
_AT_ONCE = 500
_REPORT = json.dumps({"format": "2", "text": "r" * 1_500})
"""As long as the report of a run with one output, one store and two partitions."""


class _Read(NamedTuple):
    rows: int
    cpu: float
    seconds: float


def measure(rows: int, *, hours: Sequence[int] = HOURS, **_: object) -> dict[str, Any]:
    """Return the figures. ``rows`` is ignored, ``hours`` are the runs in each ledger."""
    found: dict[str, Any] = {"rows": rows}
    with tempfile.TemporaryDirectory(prefix="rewindow-bench-") as folder, governed_project(Path(folder)) as (root, _ui):
        spark = project_of(root).spark
        for runs in hours:
            own = OwnRows(lambda: spark, TableName("spark_catalog", f"ledger_{runs}", "any"))
            for version, some in enumerate(_parts(runs), start=1):
                own.table.append(some, "bench", version)
            whole = [_read(own) for _round in range(3)]
            with own.command([_JOB]):
                own.keep_fold(_JOB, give_state)
            stored = [_read(own) for _round in range(3)]
            found[str(runs)] = {"whole": min(whole)._asdict(), "stored": min(stored)._asdict()}
    return found


def _read(own: OwnRows) -> _Read:
    """Read and fold the ledger as a new process does."""
    fresh = OwnRows(own.table.spark_of, own.table.name)
    cpu, begun = time.process_time(), time.perf_counter()
    with fresh.command([_JOB]):
        rows = fresh.ledger(_JOB).read()
        state = JobStates().fold(_JOB, rows)
    assert state.rows == len(rows), "not all rows were folded"
    return _Read(len(rows.later), round(time.process_time() - cpu, 3), round(time.perf_counter() - begun, 2))


def _parts(hours: int) -> Iterator[pa.Table]:
    """Yield the rows of the table for a job that has run so often."""
    feed, state = a_feed(hours), JobState()
    columns: dict[str, list[Any]] = {}
    for hour in range(1, hours + 1):
        spec = plan_run(
            state, feed, RunRequest(through_landing=hour), BINDING, an_attempt(f"{hour:032x}"), lambda _: False
        )
        assert isinstance(spec, RunSpec)
        plan = plan_row(spec)
        state = fold_row(state, plan)
        commit = LedgerRow(plan.seq + 1, "COMMIT", commit_of(state, spec).as_json(), hour * HOUR)
        state = fold_row(state, commit)
        body = {"rows": [[row.kind, row.body, row.recorded_at] for row in (plan, commit)]}
        for seq, kind, text in ((hour, ROWS, stored_body(body, new_token())), (None, REPORT, _REPORT)):
            values = {
                "name": _JOB,
                "seq": seq,
                "kind": kind,
                "attempt": spec.attempt.id,
                "sub_topology": 0,
                "body": text,
            }
            for name, value in (values | {"recorded_at": hour * HOUR}).items():
                columns.setdefault(name, []).append(value)
        if hour % _AT_ONCE == 0 or hour == hours:
            yield rows_of(columns, len(columns["name"]))
            columns = {}


SECTION = """\
### `governed-ledger`: what earlier runs cost a command of a catalog

{date}, {machine}, {versions}. Reading and folding the ledger of a job over Spark Connect, the least of three.

| runs | ledger rows read | CPU-seconds of the client | seconds |
| --- | --- | --- | --- |
{lines}
"""


def write(figures: dict[str, Any]) -> None:
    """Write the section of the results page."""
    lines = [
        f"| {int(hours):,}, {what} | {one['rows']:,} | {one['cpu']} | {one['seconds']} |"
        for hours in map(str, HOURS)
        for what, one in (("all rows", figures[hours]["whole"]), ("a stored fold", figures[hours]["stored"]))
    ]
    text = SECTION.format(**{**figures, "lines": "\n".join(lines)})
    write_section(results.REPORT, "governed-ledger", "python -m tests.bench", text)
    print(text)
