"""A symbolic link that leads out of the warehouse is refused, for reads and for writes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, copy_of, goes_on

pytestmark = pytest.mark.slow

LINKS = {
    "the log": ("logs/activity/events", "land activity"),
    "a partition of the log": ("logs/activity/events/[!_.]*", "run counts --land"),
    "an output's Delta log": ("alerts/totals/_delta_log", "run counts"),
    "the folder of an output": ("alerts", "run counts"),
    "the state": ("state", "run counts"),
    "the runs": ("rewindow/runs", "show counts"),
}


@pytest.mark.parametrize(("link", "line"), LINKS.values(), ids=LINKS)
def test_a_link_out_of_the_warehouse_is_refused(link: str, line: str, bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    folder = next(one for one in sorted(bench.warehouse.glob(link)) if one.is_dir())
    shutil.move(folder, outside)
    folder.symlink_to(outside, target_is_directory=True)
    before = _files(outside)
    bench.refuses(line, "path-leaves-warehouse")
    assert _files(outside) == before
    folder.unlink()
    shutil.move(outside, folder)
    goes_on(bench)


def test_a_warehouse_may_be_a_link_itself(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    shutil.move(bench.warehouse, tmp_path / "elsewhere")
    bench.warehouse.symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    goes_on(bench)


def _files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


BELOW = {
    "a table": "alerts/totals/part/link",
    "a log": "logs/activity/events/part/link",
    "internal logs of an attempt": "internal/counts/attempt/link",
    "the heartbeats": "rewindow/heartbeats",
}


@pytest.mark.parametrize("link", BELOW.values(), ids=BELOW)
def test_gc_deletes_nothing_behind_a_link(link: str, template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("theirs.parquet", f"a1-{'0' * 32}.parquet", "theirs.txt"):
        (outside / name).write_text("theirs")
        os.utime(outside / name, (0, 0))
    (bench.warehouse / link).parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(bench.warehouse / link, ignore_errors=True)
    (bench.warehouse / link).symlink_to(outside, target_is_directory=True)
    answer = bench.run("gc", "--keep", "0s")
    assert answer.code == 0 or answer.refused("path-leaves-warehouse")
    assert len(_files(outside)) == 3
