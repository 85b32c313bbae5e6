"""Records on which user code fails, through real files: a quarantine row in the same commit, or an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rewindow import Processor, Record, StreamsBuilder, Topology, key_value_store
from rewindow.app.open_project import OpenProject
from rewindow.contracts.staged_files import QUARANTINE as QUARANTINE_TARGET
from rewindow.errors import ConfigError, DataError
from rewindow.streams.settings import Limits
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import QUARANTINE
from tests.tables.scene import JOB, land, replay

pytestmark = pytest.mark.slow


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    land(str(tmp_path), 4)
    return str(tmp_path)


class Poisoned(Processor):
    def process(self, record: Record) -> None:
        seen = self.context.store("seen")
        seen.put(record.key, (seen.get(record.key) or 0) + 1)
        self.context.forward(record)
        if record.value == 7:
            raise ValueError("seven, token=abc123")


def topology(on_error: str) -> Topology:
    builder = StreamsBuilder()
    stores = [key_value_store("seen", value=int)]
    made = builder.stream("events").process(Poisoned, name="p", stores=stores, value=int, on_error=on_error)
    made.group_by_key().count(store="sums").to_stream().to("totals")
    return builder.build()


def test_a_quarantined_record_is_a_row_of_the_same_commit(warehouse: str) -> None:
    def run(attempt: str, branch: str, **asked: Any) -> Any:
        return replay(warehouse, attempt, branch, build=lambda: topology("quarantine"), quarantine=QUARANTINE, **asked)

    report = run("whole", "main")
    rows = read_rows(table_path(warehouse, QUARANTINE)).to_pylist()
    assert {(row["name"], row["topic"], row["offset"], row["node"], row["_run"]) for row in rows} == {
        (JOB, "events", 7, "p", report.spec.run)
    }
    assert all(row["reason"].startswith("ValueError: seven, token=*** [stack ") for row in rows)
    counted = [one for one in report.metrics if one["name"] == "quarantined-records"]
    assert sum(one["total"] for one in counted) == len(rows) > 0
    totals = DeltaTables(warehouse).hashes(JOB, "main")
    for landing in range(1, 5):
        run(f"cut-{landing}", "cut", through_landing=landing)
    assert DeltaTables(warehouse).hashes(JOB, "cut") == totals


def test_by_default_it_fails_and_nothing_is_committed(warehouse: str) -> None:
    with pytest.raises(DataError, match=r"node 'p' failed at events offset 7, partition .: ValueError: seven"):
        replay(warehouse, "failing", build=lambda: topology("retry 2"))
    assert DeltaTables(warehouse).state(JOB).committed == ()


def project(folder: Path, more: str) -> OpenProject:
    """Write a project for the landed feed, with additional lines in the job's file."""
    files = {
        "conf/targets/local.yaml": "target: local\nwarehouse: .\n",
        "conf/jobs/poisoned.yaml": f"job: poisoned\ntopology: poisoned_job:build\nfeed: activity\n"
        f"outputs: {{totals: {{table: alerts.totals}}}}\n{more}\n",
        "poisoned_job.py": "from functools import partial\nfrom tests.tables.test_on_error import topology\n"
        "build = partial(topology, 'fail')\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return OpenProject.open(folder)


def test_the_job_s_file_says_policies_and_limits(warehouse: str) -> None:
    folder = Path(warehouse)
    default = project(folder, "").bind("poisoned")
    assert (QUARANTINE_TARGET in default.binding.tables, default.code.settings.limits) == (False, Limits())
    given = project(folder, "on_error: {p: retry 2 quarantine}\nlimits: {store_rows: 5}").bind("poisoned")
    assert QUARANTINE_TARGET in given.binding.tables
    assert given.code.settings.limits == Limits(store_rows=5)
    assert not given.code.settings.keeps_dropped, "by default, late records are only counted"
    assert given.binding.fingerprint == default.binding.fingerprint
    with pytest.raises(ConfigError, match="names 'q', which is not a node with code"):
        project(folder, "on_error: {q: fail}").bind("poisoned")
