"""A function that extracts event times and has changed, or is gone: landed records keep their times, and commands say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, copy_of
from tests.ingest.local_engine import HOUR, T0

MODULE = '''
def at(record, partition_time):
    """Return the time."""
    return record.value.t
'''


@pytest.fixture
def bench(template: Bench, tmp_path: Path) -> Bench:
    made = copy_of(template, tmp_path / "project")
    made.write("bench_times.py", MODULE)
    made.edit("conf/feeds/activity.yaml", "timestamp: t,", "timestamp: bench_times:at,")
    made.done("land activity --new-generation")
    return made


def landed(bench: Bench, hour: int) -> list[str]:
    """Land another record and return the codes of the warnings."""
    bench.rows(f"h{hour}", [{"user": "ann", "t": T0, "got": T0 + hour * HOUR, "x": 1}])
    codes: list[str] = bench.json("land activity")["warning_codes"]
    return codes


def test_a_change_is_named_once_by_land_and_before_by_ls(bench: Bench) -> None:
    bench.write("bench_times.py", MODULE.replace("Return", "Give"))
    assert landed(bench, 4) == [], "a docstring changes nothing"
    bench.write("bench_times.py", MODULE.replace("value.t", "value.t + 1"))
    assert bench.json("ls")["feeds"][0]["detail_codes"] == ["extractor-changed"]
    assert landed(bench, 5) == ["extractor-changed"]
    assert landed(bench, 6) == []


def test_a_module_that_prints_when_it_is_imported_does_not_write_into_json(bench: Bench) -> None:
    bench.write("bench_times.py", f"print('imported')\n{MODULE}")
    bench.json("land activity")
    bench.json("status")


def test_a_function_that_is_gone_makes_the_feed_broken(bench: Bench) -> None:
    (bench.root / "bench_times.py").unlink()
    assert bench.json("status")["feeds"][0]["status"] == "broken"
    bench.refuses("land activity", "timestamp-function-missing", function="bench_times:at")
