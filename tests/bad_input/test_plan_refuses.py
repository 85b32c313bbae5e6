"""`plan` ends with the code and the words with which `run` would refuse (76), however late `run` would notice it.

And a run without new data says that the code has changed, although the job accepts that.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from rewindow.contracts.staged_files import METRICS as METRICS_COLUMNS
from rewindow.tables.delta.create_table import create_table
from rewindow.tables.shared.arrow_tables import arrow_schema
from rewindow.tables.shared.paths import JOURNAL, METRICS
from tests.bad_input.scene import Bench, hour, topology
from tests.refusals import told

TICKS = """\
class Ticks(Processor):
    def init(self, context):
        self.context = context
        context.schedule("10m", PunctuationType.STREAM_TIME, self.{method})

    def {method}(self, now_ms):
        pass

    def process(self, record):
        self.context.forward(record)
"""
TICKING = topology(
    'builder.stream("events").process(Ticks, name="ticks").map_values(lambda row: row.x).to("totals")', before=TICKS
)


def next_hour(bench: Bench) -> None:
    bench.rows("h3", hour(3))
    bench.done("land activity")


def another_column(bench: Bench) -> None:
    next_hour(bench)
    table = DeltaTable(bench.warehouse / "alerts/totals")
    table.alter.add_columns([Field("mine", PrimitiveType("string"))])


def metrics_of_0_1(bench: Bench) -> None:
    fresh(bench)
    schema = arrow_schema(METRICS_COLUMNS)
    at = schema.get_field_index("branch")
    create_table(str(bench.warehouse / METRICS), schema.set(at, schema.field(at).with_name("former")))


def journal_of_0_1(bench: Bench) -> None:
    fresh(bench)
    names = ("job", "attempt", "stage", "partition", "report")
    schema = pa.schema([(name, pa.int64() if name in names[2:4] else pa.string()) for name in names])
    create_table(str(bench.warehouse / JOURNAL), schema, ("job",))


def fresh(bench: Bench) -> None:
    """Leave only the source."""
    shutil.rmtree(bench.warehouse)
    bench.done("land activity")


def older_landing_ledger(bench: Bench) -> None:
    ledger, copy = bench.warehouse / "rewindow/landings", bench.root / "copy"
    shutil.copytree(ledger, copy)
    next_hour(bench)
    shutil.rmtree(ledger)
    shutil.move(copy, ledger)


def method_is_gone(bench: Bench) -> None:
    fresh(bench)
    bench.write("bench_job.py", TICKING.format(method="on_time"))
    bench.done("run counts")
    next_hour(bench)
    bench.write("bench_job.py", TICKING.format(method="on_tick"))


REFUSED: dict[Callable[[Bench], None], str] = {
    another_column: "table-columns-differ",
    metrics_of_0_1: "table-format-too-old",
    journal_of_0_1: "table-format-too-old",
    older_landing_ledger: "landing-ledger-behind-log",
    method_is_gone: "schedule-method-missing",
}


@pytest.mark.parametrize(("given", "code"), REFUSED.items())
def test_plan_refuses_with_76_what_run_refuses_with_76(bench: Bench, given: Callable[[Bench], None], code: str) -> None:
    given(bench)
    before = bench.files()
    bench.refuses("plan counts", code)
    assert bench.files() == before
    bench.refuses("run counts", code)


def test_plan_and_status_say_of_a_table_without_its_log_that_the_next_run_restores_it(bench: Bench) -> None:
    clean = bench.result()
    shutil.rmtree(bench.warehouse / "alerts/totals/_delta_log")
    before = bench.files()
    assert bench.json("plan counts")["lagging"] == {"output/totals": 2}
    told((finding.message for finding in bench.findings("counts")), "tables-behind-ledger")
    assert bench.files() == before
    bench.done("run counts")
    assert bench.result() == clean


def test_a_run_with_changed_code_and_no_new_data_says_so(bench: Bench) -> None:
    assert bench.json("run counts")["changed"] == []
    bench.edit("bench_job.py", "row.x * 2", "row.x * 3")
    answer = bench.json("run counts")
    assert answer["run"] is None
    assert any("score" in line for line in answer["changed"])
