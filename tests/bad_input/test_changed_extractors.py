"""A function that extracts event times and has changed, or is gone: landed records keep their times, and commands say so."""

from __future__ import annotations

import json
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
    assert made.run("land", "activity", "--new-generation").code == 0
    return made


def landed(bench: Bench) -> list[str]:
    answer = bench.run("land", "activity", "--json")
    assert answer.code == 0, answer
    return [str(one) for one in json.loads(answer.out)["warnings"]]


def test_a_change_is_named_once_by_land_and_before_by_ls(bench: Bench) -> None:
    assert landed(bench) == []
    bench.write("bench_times.py", MODULE.replace("Return", "Give"))
    bench.rows("h4", [{"user": "ann", "t": T0, "got": T0 + 4 * HOUR, "x": 1}])
    assert landed(bench) == [], "a docstring changes nothing"
    bench.write("bench_times.py", MODULE.replace("value.t", "value.t + 1"))
    bench.rows("h5", [{"user": "ann", "t": T0, "got": T0 + 5 * HOUR, "x": 1}])
    assert "bench_times:at has changed since landing" in bench.run("ls").out
    (said,) = landed(bench)
    assert "Landed records keep their times; `rewindow land activity --new-generation`" in said
    bench.rows("h6", [{"user": "ann", "t": T0, "got": T0 + 6 * HOUR, "x": 1}])
    assert landed(bench) == []


def test_a_module_that_prints_when_it_is_imported_does_not_write_into_json(bench: Bench) -> None:
    bench.write("bench_times.py", f"print('imported')\n{MODULE}")
    for words in (("land", "activity"), ("status",)):
        json.loads(bench.run(*words, "--json").out)


def test_a_function_that_is_gone_makes_the_feed_broken(bench: Bench) -> None:
    (bench.root / "bench_times.py").unlink()
    status = bench.run("status", "--json")
    (feed,) = json.loads(status.out)["feeds"]
    assert (status.code, feed["status"]) == (1, "broken")
    assert bench.run("land", "activity").code == 78
