"""Surroundings that no command expects: a clock that jumps, a strict umask, a full folder for temporary files, little memory."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.bad_input.scene import FRESH, Bench, copy_of, goes_on, hour
from tests.bad_input.test_full_disk import IN_A_SPACE, is_allowed
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

YEAR_S = 365 * 86_400
COMMANDS = (
    *("land activity", "run counts", "show counts", "gc counts", "gc activity"),
    *("backfill counts --from 2 --branch trial", "promote counts trial", "rewind counts --to main/1"),
    *("run counts", "verify counts"),
)


@pytest.fixture(scope="module")
def clean(template: Bench, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    bench = copy_of(template, tmp_path_factory.mktemp("clean") / "project")
    bench.done(*COMMANDS)
    return bench.result()


@pytest.mark.parametrize(
    "jumps",
    [[YEAR_S, -YEAR_S], [0, 7200, -7200]],
    ids=["a year to and fro", "daylight saving by hand"],
)
def test_a_clock_that_jumps_between_commands_changes_no_row(
    bench: Bench, clean: dict[str, str], monkeypatch: pytest.MonkeyPatch, jumps: list[int]
) -> None:
    seconds, nanoseconds, jump = time.time, time.time_ns, cycle(jumps)
    for line in COMMANDS:
        off = next(jump)
        monkeypatch.setattr("time.time", lambda off=off: seconds() + off)
        monkeypatch.setattr("time.time_ns", lambda off=off: nanoseconds() + off * 10**9)
        bench.done(line)
    assert bench.result() == clean


@pytest.fixture
def strict_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("strict_umask")
def test_files_of_one_user_only_are_enough(bench: Bench, clean: dict[str, str]) -> None:
    bench.done(*COMMANDS)
    assert bench.result() == clean
    made = [path for path in bench.warehouse.rglob("*") if path.is_file() and path.stat().st_mtime > time.time() - 3600]
    assert any(not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) for path in made)


def test_a_small_file_of_huge_values_ends_with_71_and_names_it(bench: Bench) -> None:
    rows = hour(FRESH, rows=8_000)
    users = pa.DictionaryArray.from_arrays(pa.array([0] * len(rows), pa.int32()), pa.array(["x" * 1_000_000]))
    bomb = bench.root / "raw/h2.parquet"
    pq.write_table(pa.Table.from_pylist(rows).set_column(0, "user", users), bomb)
    assert bomb.stat().st_size < 1 << 20
    script = f"ulimit -v {6 << 20}; exec {sys.executable} -m rewindow land activity --project {bench.root}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 71, done.stderr
    assert str(bomb) in done.stderr
    assert "do not fit into memory" in done.stderr
    assert "Traceback" not in done.stderr
    bench.rows("h2", hour(FRESH))
    goes_on(bench)


def test_a_full_folder_for_temporary_files_ends_with_71_and_names_it(bench: Bench, tmp_path: Path) -> None:
    disk = tmp_path / "temporary"
    disk.mkdir()
    if not is_allowed(disk):
        pytest.skip("users cannot mount file systems on this machine")
    bench.edit("conf/feeds/activity.yaml", "partitions: 2\n", "partitions: 2\nlanding: {memory: 1MiB}\n")
    several = pa.Table.from_pylist(hour(FRESH, rows=200_000))
    pq.write_table(several, bench.root / "raw/h2.parquet", row_group_size=20_000)
    command = f"{sys.executable} -m rewindow land activity --project {bench.root}"
    script = f"mount -t tmpfs -o size=256k tmpfs {disk} && {command}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib"), "TMPDIR": str(disk)}
    before = bench.decided()
    full = subprocess.run(
        [*IN_A_SPACE, "sh", "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert full.returncode == 71, full.stderr
    assert str(disk) in full.stderr
    assert "TMPDIR" in full.stderr
    assert "Traceback" not in full.stderr
    assert bench.decided() == before
    goes_on(bench)
