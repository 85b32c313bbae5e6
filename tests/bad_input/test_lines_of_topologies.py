"""An error of a topology begins with the line of the code that made the part in question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, copy_of

TOPOLOGY = """\
from rewindow import StreamsBuilder, Sum


def build_topology():
    builder = StreamsBuilder()
    (
        builder.stream({topic!r})
        {verb}
        .to("totals")
    )
    return builder.build()
"""
CASES = {
    "a field that no record has": ('.where("nothing > 1")', 8, "there is no field 'nothing'"),
    "an aggregate of a field that no record has": (
        '.group_by_key().aggregate(Sum("nothing"), store="sums").to_stream()',
        8,
        "there is no field 'nothing'",
    ),
    "two stores of one name": (
        '.group_by_key().count(store="counts").to_stream().group_by_key().reduce(max, store="counts").to_stream()',
        8,
        "counts",
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("command", ["plan", "run"])
def test_the_line_is_named(template: Bench, tmp_path: Path, case: str, command: str) -> None:
    verb, line, words = CASES[case]
    bench = copy_of(template, tmp_path / "project")
    bench.write("bench_job.py", TOPOLOGY.format(topic="events", verb=verb))
    answer = bench.run(command, "counts")
    assert answer.code == 78, answer
    assert answer.err.startswith(f"rewindow: bench_job.py:{line}: job 'counts'")
    assert words in answer.err


def test_a_topic_that_the_feed_lacks_is_named_where_it_is_read(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    bench.write(
        "bench_job.py", TOPOLOGY.format(topic="event", verb='.group_by_key().count(store="counts").to_stream()')
    )
    answer = bench.run("plan", "counts")
    assert answer.code == 78, answer
    assert "bench_job.py:7: job 'counts': the topology reads 'event', which feed 'activity' does not have" in answer.err


def test_a_module_that_prints_when_it_is_imported_does_not_write_into_json(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    bench.edit("bench_job.py", "def build_topology", 'print("imported")\n\n\ndef build_topology')
    answer = bench.run("plan", "counts", "--json")
    assert json.loads(answer.out)["run"] is None, answer
    assert "imported" in answer.err


def test_an_async_function_is_no_topology(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    bench.edit("bench_job.py", "def build_topology", "async def build_topology")
    answer = bench.run("plan", "counts")
    assert answer.code == 78, answer
    assert answer.err.count("\n") == 1, answer
    assert "[topology-function-async]" in answer.err
    assert "build_topology is `async`: write `def build_topology` without it" in answer.err


def test_a_module_that_the_topologys_module_does_not_find_is_named_with_its_line(
    template: Bench, tmp_path: Path
) -> None:
    bench = copy_of(template, tmp_path / "project")
    bench.write("bench_job.py", "import json\n\nimport pandass\n" + TOPOLOGY.format(topic="events", verb=""))
    answer = bench.run("plan", "counts")
    assert answer.code == 78, answer
    assert answer.err == (
        "rewindow: bench_job.py:3: job 'counts': cannot import 'bench_job': No module named 'pandass'. Fix the import, or "
        "install the module [topology-import-missing]\n"
    )
