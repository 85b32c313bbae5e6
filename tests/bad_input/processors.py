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


def _case(name: str, command: str, code: int, old: str, new: str, says: tuple[str, ...]) -> Case:
    given = edited("bench_job.py", old, new, project)
    return Case(f"a processor {name}", command, code, says, given, goes_on=False)


def _run(name: str, old: str, new: str, *says: str, code: int = 65) -> Case:
    return _case(name, "run seen", code, old, new, says)


def _plan(name: str, old: str, new: str, *says: str) -> Case:
    return _case(name, "plan seen", 78, old, new, says)


def _field(name: str, begins: str, changes: str) -> Case:
    def given(bench: Bench) -> None:
        project(bench)
        bench.edit("bench_job.py", _SCHEDULE, f"{_SCHEDULE}\n        self.field = {begins}")
        bench.edit("bench_job.py", _PUT, f"{_PUT}\n        {changes}")

    says = ("bench_job.py:13: ", "self.field", "context.store(name)")
    return Case(f"a processor {name}", "check seen", 1, says, given, goes_on=False)


_PUT = "self.counts.put(record.key, (self.counts.get(record.key) or 0) + 1)"
_FORWARD = "self.context.forward(Record(record.key, record.value.x, record.timestamp))"
_SCHEDULE = 'context.schedule("30m", PunctuationType.STREAM_TIME, self.check, name="half-hourly")'
CASES = [
    _plan("without process", "def process(", "def proces(", "Seen has no method process", "rename proces to process"),
    _plan("whose process takes key and value", "process(self, record)", "process(self, key, value)", "(self, record)"),
    _plan("whose init takes nothing", "def init(self, context)", "def init(self)", "(self, context)"),
    _plan("that yields", _FORWARD, "yield record", "uses yield or is async, so it would never run", "forward"),
    _plan("that is async", "    def process", "    async def process", "uses yield or is async"),
    _plan("that is an instance", "process(Seen,", "process(Seen(),", "pass the class"),
    _plan("with a store that is no list", "stores=[store]", "stores=store", "as in stores=[store]"),
    _plan("with a store's name alone", "stores=[store]", 'stores=["seen"]', "was not added", "give the store itself"),
    _run(
        "that returns its result",
        _FORWARD,
        "return record",
        "bench_job.py:10",
        "returned an instance of Record",
        code=78,
    ),
    _run(
        "that returns what it forwards",
        _FORWARD,
        f"return [{_FORWARD}]",
        "returned an instance of list, which is lost",
        code=78,
    ),
    _run("that forwards a pair", _FORWARD, "self.context.forward((record.key, 1))", "give a Record(key, value)"),
    _run("that forwards key and value", _FORWARD, "self.context.forward(record.key, 1)", "forward takes one Record"),
    _run("that forwards a value", _FORWARD, "self.context.forward(record.value)", "give a Record(key, value)"),
    _run("that forwards another type", _FORWARD, _FORWARD.replace("record.value.x", "'many'"), "'many'", "seen"),
    _run("that forwards a float as time", _FORWARD, _FORWARD.replace("record.timestamp", "1.5"), "epoch milliseconds"),
    _run("that forwards to nobody", _FORWARD, f"{_FORWARD[:-1]}, to='totals')", "To.child(name)"),
    _run("without its store", ", stores=[store]", "", "not connected to a store 'seen'", "stores=(...)", code=78),
    _run("with a misspelt store", 'store("seen")', 'store("sen")', "not connected to a store 'sen'", code=78),
    _run("that puts another type", _PUT, "self.counts.put(record.key, 'one')", "does not fit the type long"),
    _run("that puts a null key", _PUT, "self.counts.put(None, 1)", "node 'seen'"),
    _run("that takes a store for a dict", _PUT, "self.counts[record.key] = 1", "item assignment", "bench_job.py:11"),
    _run("that never opened its store", "        self.counts = context.store", "        context.store", "'counts'"),
    _run("that schedules milliseconds", '"30m"', "1_800_000", "the duration 1800000 has no unit", code=78),
    _run("that schedules by a text", "PunctuationType.STREAM_TIME", '"stream"', "PunctuationType.STREAM_TIME", code=78),
    _run("that schedules by an unknown clock", "STREAM_TIME", "EVENT_TIME", "EVENT_TIME", "bench_job.py:8"),
    _run("that schedules a call", "self.check,", "self.check(0),", "pass self.<method>", code=78),
    _run("whose callback takes nothing", "check(self, now_ms)", "check(self)", "node 'seen'", "bench_job.py:14"),
    _field("that counts in a field", "0", "self.field += 1"),
    _field("that remembers in a dict", "{}", "self.field[record.key] = record.timestamp"),
    _field("that collects in a list", "[]", "self.field.append(record)"),
    _field("that remembers the last time", "None", "self.field = record.timestamp"),
]
