"""Slips in the code of a processor, as newcomers make them who know Kafka Streams, pandas or nothing of the kind."""

from __future__ import annotations

from tests.bad_input.cases import Case, edited
from tests.bad_input.scene import Bench

MODULE = """\
from rewindow import Processor, PunctuationType, Record, StreamsBuilder, TimeWindows, key_value_store, until_window_closes


class Seen(Processor):
    def init(self, context):
        super().init(context)
        self.counts = context.store("seen")
        context.schedule("30m", PunctuationType.STREAM_TIME, self.check, name="half-hourly")

    def process(self, record):
        self.counts.put(record.key, (self.counts.get(record.key) or 0) + 1)
        self.context.forward(Record(record.key, record.value.x, record.timestamp))

    def check(self, now_ms):
        self.context.forward(Record("all", now_ms, now_ms))


def build_topology():
    builder = StreamsBuilder()
    store = key_value_store("seen", key=str, value=int)
    seen = builder.stream("events").process(Seen, name="seen", stores=[store], key=str, value=int)
    seen.to("totals")
    return builder.build()
"""
JOB = """\
job: seen
topology: bench_job:build_topology
feed: activity
outputs:
  totals: {table: alerts.seen}
"""


def project(bench: Bench) -> None:
    """Write the job into a project whose feed is landed."""
    bench.write("conf/jobs/seen.yaml", JOB)
    bench.write("bench_job.py", MODULE)


def _plan(name: str, old: str, new: str, code: str, /, **facts: object) -> Case:
    return Case(f"a processor {name}", "plan seen", code, facts, edited("bench_job.py", old, new, project))


def _run(name: str, old: str, new: str, code: str, /, **facts: object) -> Case:
    return Case(f"a processor {name}", "run seen", code, facts, edited("bench_job.py", old, new, project))


_PUT = "self.counts.put(record.key, (self.counts.get(record.key) or 0) + 1)"
_FORWARD = "self.context.forward(Record(record.key, record.value.x, record.timestamp))"
CASES = [
    _plan("without process", "def process(", "def proces(", "process-method-missing", method="proces"),
    _plan(
        "whose process takes key and value",
        "process(self, record)",
        "process(self, key, value)",
        "function-parameters-wrong",
    ),
    _plan("that yields", _FORWARD, "yield record", "process-method-never-runs", node="seen"),
    _plan("with a store's name alone", "stores=[store]", 'stores=["seen"]', "node-store-missing", store="seen"),
    _plan("with a store that is no list", "stores=[store]", "stores=store", "stores-not-listed"),
    _run("that returns its result", _FORWARD, "return record", "process-returned-value", type="Record"),
    _run(
        "that forwards a pair",
        _FORWARD,
        "self.context.forward((record.key, 1))",
        "forwarded-value-not-record",
        node="seen",
    ),
    _run("with a misspelt store", 'store("seen")', 'store("sen")', "store-not-connected", store="sen"),
    _run("that puts another type", _PUT, "self.counts.put(record.key, 'one')", "value-type-wrong", type="str"),
    _run("that schedules milliseconds", '"30m"', "1_800_000", "duration-without-unit"),
    _run("that schedules a call", "self.check,", "self.check(0),", "schedule-callback-not-method"),
]
"""One of each kind that only a whole project shows. What verbs and contexts refuse is in `tests/dsl` and `tests/streams`."""
