"""`plan` ends with the code and the words with which `run` would refuse (76), however late `run` would notice it.

And a run without new data says that the code has changed, although the job accepts that.
"""

from __future__ import annotations

import json
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
from tests.bad_input.scene import Bench, hour

TICKS = """
from rewindow import Processor, PunctuationType, StreamsBuilder


class Ticks(Processor):
    def init(self, context):
        self.context = context
        context.schedule("10m", PunctuationType.STREAM_TIME, self.{method})

    def {method}(self, now_ms):
        pass

    def process(self, record):
        self.context.forward(record)


def build_topology():
    builder = StreamsBuilder()
    builder.stream("events").process(Ticks, name="ticks").map_values(lambda row: row.x).to("totals")
    return builder.build()
"""


def next_hour(bench: Bench) -> None:
    bench.rows("h3", hour(3))
    assert bench.run("land", "activity").code == 0


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
    assert bench.run("land", "activity").code == 0


def older_landing_ledger(bench: Bench) -> None:
    ledger, copy = bench.warehouse / "rewindow/landings", bench.root / "copy"
    shutil.copytree(ledger, copy)
    next_hour(bench)
    shutil.rmtree(ledger)
    shutil.move(copy, ledger)


def method_is_gone(bench: Bench) -> None:
    fresh(bench)
    bench.write("bench_job.py", TICKS.format(method="on_time"))
    assert bench.run("run", "counts").code == 0
    next_hour(bench)
    bench.write("bench_job.py", TICKS.format(method="on_tick"))


REFUSED: dict[str, tuple[Callable[[Bench], None], str]] = {
    "another column": (another_column, "has other columns than the present code makes: mine (string) is gone"),
    "metrics of 0.1": (metrics_of_0_1, "written by rewindow 0.1"),
    "journal of 0.1": (journal_of_0_1, "written by rewindow 0.1"),
    "an older landing ledger": (older_landing_ledger, "an older copy of the ledger was restored"),
    "a schedule without its method": (method_is_gone, "which is gone"),
}


@pytest.mark.parametrize(("given", "says"), REFUSED.values(), ids=REFUSED)
def test_plan_refuses_with_76_what_run_refuses_with_76(bench: Bench, given: Callable[[Bench], None], says: str) -> None:
    given(bench)
    before = bench.files()
    planned = bench.run("plan", "counts")
    assert bench.files() == before
    ran = bench.run("run", "counts")
    assert (planned.code, ran.code) == (76, 76), (planned, ran)
    assert says in planned.err
    assert says in ran.err
    assert bench.run("status", "counts").code == 1


def test_plan_and_status_say_of_a_table_without_its_log_that_the_next_run_restores_it(bench: Bench) -> None:
    clean = bench.result()
    shutil.rmtree(bench.warehouse / "alerts/totals/_delta_log")
    before = bench.files()
    planned, status = bench.run("plan", "counts", "--json"), bench.run("status", "counts")
    assert bench.files() == before
    assert planned.code == 0, planned
    assert json.loads(planned.out)["lagging"] == {"output/totals": 2}
    assert (status.code, "refused" in status.out) == (1, False)
    assert "tables lag behind the ledger: output/totals by 2 commits: `rewindow run counts`" in status.out
    assert bench.run("run", "counts").code == 0
    assert bench.result() == clean


def test_plan_and_run_refuse_a_table_whose_staged_files_are_gone_alike(bench: Bench) -> None:
    shutil.rmtree(bench.warehouse / "alerts/totals")
    planned, ran = bench.run("plan", "counts"), bench.run("run", "counts")
    assert (planned.code, planned.err) == (74, ran.err)
    assert (ran.code, "[published-table-altered]" in ran.err) == (74, True)
    assert "`rewindow republish counts`" in ran.err


def test_a_run_with_changed_code_and_no_new_data_says_so(bench: Bench) -> None:
    assert bench.run("run", "counts", "--land").code == 0
    assert "changed" not in bench.run("run", "counts").out
    bench.edit("bench_job.py", "row.x * 2", "row.x * 3")
    shown = bench.run("run", "counts")
    assert shown.code == 0
    assert "Nothing to run: branch 'main' has taken all epochs through 3." in shown.out
    assert "The job has changed since the checkpoint of run main/3" in shown.out
    assert "score" in shown.out
    found = json.loads(bench.run("run", "counts", "--json").out)
    assert found["run"] is None
    assert any("score" in line for line in found["changed"])
