"""An error of a topology begins with the line of the code that made the part in question."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.bad_input.scene import Bench
from tests.refusals import containing

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
    '.where("nothing > 1")': ("unknown-field", {"field": "nothing"}),
    '.group_by_key().aggregate(Sum("nothing"), store="sums").to_stream()': ("aggregate-field-unknown", {}),
    '.group_by_key().count(store="n").to_stream().group_by_key().reduce(max, store="n").to_stream()': (
        "named-twice",
        {"kind": "nodes", "name": "n"},
    ),
}


@pytest.mark.parametrize("verb", CASES)
def test_the_line_is_named(template: Bench, verb: str) -> None:
    code, facts = CASES[verb]
    with changed(template, TOPOLOGY.format(topic="events", verb=verb)):
        assert template.refuses("plan counts", code, **facts).message.startswith("bench_job.py:8: job 'counts'")


def test_a_topic_that_the_feed_lacks_is_named_where_it_is_read(template: Bench) -> None:
    text = TOPOLOGY.format(topic="event", verb='.group_by_key().count(store="counts").to_stream()')
    with changed(template, text):
        refusal = template.refuses("plan counts", "topic-not-in-feed", topic="event")
    assert refusal.message.startswith("bench_job.py:7: job 'counts'")


def test_a_module_that_prints_when_it_is_imported_does_not_write_into_json(template: Bench) -> None:
    with changed(template, 'print("imported")\n' + (template.root / "bench_job.py").read_text()):
        assert template.json("plan counts")["run"] is None


def test_a_module_that_the_topologys_module_does_not_find_is_named_with_its_line(template: Bench) -> None:
    with changed(template, "import json\n\nimport pandass\n" + TOPOLOGY.format(topic="events", verb="")):
        refusal = template.refuses("plan counts", "topology-import-missing", reason=containing("'pandass'"))
    assert refusal.message.startswith("bench_job.py:3: job 'counts'")


@contextmanager
def changed(bench: Bench, module: str) -> Iterator[None]:
    """Replace the job's module until the block ends."""
    before = (bench.root / "bench_job.py").read_text()
    bench.write("bench_job.py", module)
    try:
        yield
    finally:
        bench.write("bench_job.py", before)
