"""An error of a topology begins with the line of the code that made the part in question."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, copy_of

TOPOLOGY = """\
from rewindow import StreamsBuilder, Sum


def build_topology():
    builder = StreamsBuilder()
    (
        builder.stream("events")
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
    bench.write("bench_job.py", TOPOLOGY.format(verb=verb))
    answer = bench.run(command, "counts")
    assert answer.code == 78, answer
    assert answer.err.startswith(f"rewindow: bench_job.py:{line}: job 'counts'")
    assert words in answer.err
