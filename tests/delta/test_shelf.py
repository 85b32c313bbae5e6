"""A job whose stores are larger than their memory leaves the tables of one whose stores are not, run by run."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from rewindow import StreamsBuilder
from rewindow.core.settings import Limits, Settings
from rewindow.delta.warehouse import DeltaTables
from rewindow.plan.stages import JobCode
from rewindow.spark.shelf import SqliteShelf
from tests.delta import scene
from tests.delta.scene import JOB, land, replay

pytestmark = pytest.mark.slow

LANDINGS = 4


def test_a_store_on_disk_leaves_what_one_in_memory_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = str(tmp_path)
    land(warehouse, LANDINGS)
    builder = StreamsBuilder()
    counts = builder.stream("events").group_by_key().count(store="sums")
    counts.filter(lambda _user, count: count % 3 > 0).to_stream().to("totals")
    replay(warehouse, "memory", "memory", build=builder.build)
    written: list[bytes] = []
    write = SqliteShelf.write
    monkeypatch.setattr(
        SqliteShelf, "write", lambda self, rows: write(self, (written.append(row[0]) or row for row in rows))
    )
    monkeypatch.setattr(scene, "JobCode", partial(JobCode, settings=Settings(limits=Limits(store_memory=1))))
    for landing in range(1, LANDINGS + 1):
        replay(warehouse, f"disk-{landing}", "disk", through_landing=landing, build=builder.build)
    assert len(written) > 2 * LANDINGS
    tables = DeltaTables(warehouse)
    assert tables.hashes(JOB, "disk") == tables.hashes(JOB, "memory")
