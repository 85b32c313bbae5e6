"""Error policies: `fail`, `retry n` and `quarantine`. A failed attempt leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow import (
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    join_store,
    key_value_store,
    session_store,
    until_time_limit,
    versioned_store,
    window_store,
)
from rewindow.errors import DataError
from rewindow.streams.settings import OnError
from rewindow.streams.state.stores import RECORDS, StoreBuilder
from rewindow.testing import TopologyTestDriver
from tests.refusals import containing, refused

STORES = (
    key_value_store("kv"),
    window_store("win", size="10ms", retention="20ms"),
    session_store("ses", retention="20ms"),
    versioned_store("past", history="20ms"),
    join_store("near", retention="20ms"),
    StoreBuilder("wait", RECORDS),
)


class Clumsy(Processor):
    """Does everything that can be rolled back, then fails ``fails`` times on the value "bad"."""

    fails = 0

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.kv, self.win, self.ses, self.past, self.near, self.wait = (context.store(one.name) for one in STORES)

    def process(self, record: Record) -> None:
        context, time = self.context, record.timestamp
        number = (self.kv.get("all") or 0) + 1
        self.kv.put("all", number)
        self.kv.put(record.key, [number])
        if number % 3 == 0:
            self.kv.delete("first")
        self.win.put(record.key, number, time - time % 10)
        list(self.win.fetch_range(record.key, 0, 1000))
        window = _session(record.key, time)
        self.ses.put(window, number)
        if number % 4 == 0:
            self.ses.remove(window)
        self.past.put(record.key, number, time)
        self.near.put(record.key, number, time)
        self.wait.put(record.key, number, time)
        if number % 5 == 0:
            self.wait.remove(record.key, time)
            self.near.remove(record.key, time)
        context.forward(record.with_value((number, context.uuid(), context.random().getrandbits(32))))
        context.observe(time)
        context.measure("seen").record(number)
        context.schedule("7ms", PunctuationType.STREAM_TIME, self.tell, name=f"of {record.key}")
        context.drop(record, "mine", reason="every one")
        if record.value == "bad":
            self.kv.put("tried", 1)
            self.win.put(record.key, 9, time + 1000)  # would expire all other windows
            self.ses.put(_session(record.key, time + 1000), 9)
            self.past.put(record.key, None, time + 1000)
            self.near.put(record.key, 9, time + 1000)
            list(self.wait.pop_before(time + 1000))
            context.cancellable(f"of {record.key}").cancel()
            if Clumsy.fails:
                Clumsy.fails -= 1
                raise ValueError(f"no luck, password=hunter2, {object()!r}")

    def tell(self, now_ms: int) -> None:
        self.context.forward(Record("at", now_ms))


def _session(key: Any, time: int) -> Any:
    from rewindow import Window, Windowed

    return Windowed(key, Window(time - time % 5, time, is_session=True))


def topology(on_error: str) -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").process(Clumsy, name="clumsy", stores=STORES, on_error=on_error).to("out")
    return builder.build()


def played(on_error: str, records: list[tuple[Any, Any, int]], *, fails: int = 0, cut: bool = False) -> tuple[Any, ...]:
    Clumsy.fails = fails
    driver = TopologyTestDriver(topology(on_error))
    for key, value, timestamp in records:
        driver.pipe("in", key, value, timestamp)
        if cut:
            driver.cut()
    lost = [one for one in driver.dropped if one.reason != "every one"]
    metrics = [row for row in driver.metrics if row["name"] != "quarantined-records"]
    return driver.read("out"), driver.checkpoints(), metrics, driver.dropped, lost


GOOD = [("first", 0, 3), ("b", 0, 12), ("c", 0, 14), ("b", 0, 25), ("first", 0, 33), ("d", 0, 50)]


@pytest.mark.parametrize("position", range(len(GOOD) + 1))
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_a_quarantined_record_leaves_no_trace_but_its_row(position: int, *, cut: bool) -> None:
    """The results equal those with a record that does nothing at the same offset."""

    class Skips(Clumsy):
        def process(self, record: Record) -> None:
            if record.value != "nothing":
                super().process(record)

    at = GOOD[position - 1][2] if position else 1
    poisoned = [*GOOD[:position], ("b", "bad", at), *GOOD[position:]]
    sent, states, metrics, dropped, lost = played("quarantine", poisoned, fails=1, cut=cut)
    builder = StreamsBuilder()
    builder.stream("in").process(Skips, name="clumsy", stores=STORES).to("out")
    clean = TopologyTestDriver(builder.build())
    for key, value, timestamp in [*GOOD[:position], ("b", "nothing", at), *GOOD[position:]]:
        clean.pipe("in", key, value, timestamp)
        if cut:
            clean.cut()
    assert sent == clean.read("out")
    assert states == clean.checkpoints()
    assert metrics == clean.metrics
    (row,) = [one for one in lost if one.reason.startswith("ValueError")]
    assert [one for one in dropped if one is not row] == clean.dropped
    assert (row.at, row.node, row.timestamp) == (("in", 0, position), "clumsy", at)
    assert row.record == '{"key":"b","value":"bad"}'
    assert "no luck, password=***, <object object at 0x...>" in row.reason
    assert "[stack " in row.reason


@pytest.mark.parametrize("policy", ["retry 2", "retry 2 quarantine"])
def test_a_record_that_succeeds_at_the_third_attempt_has_the_same_result(policy: str) -> None:
    records = [*GOOD[:3], ("b", "bad", 20), *GOOD[3:]]
    assert played(policy, records, fails=2) == played(policy, records) == played("fail", records)


def test_after_the_last_attempt_the_run_fails_or_the_record_is_quarantined() -> None:
    poisoned = [("b", "bad", 20)]
    with refused(
        "node-failed", node="clumsy", position="in offset 0", partition=0, fix=containing("Fix the code, or the")
    ):
        played("retry 2", poisoned, fails=3)
    with pytest.raises(
        DataError,
        match=r"node 'clumsy' failed.*that the test gives it\. The record: {\"key\":\"b\",\"value\":\"bad\"}$",
    ):
        played("fail", poisoned, fails=3)
    assert len(played("retry 2 quarantine", poisoned, fails=3)[4]) == 1
    assert played("retry 3 quarantine", poisoned, fails=3)[4] == []


def test_quarantined_records_are_counted_by_error_class() -> None:
    driver = TopologyTestDriver(topology("quarantine"))
    for at in (1, 2):
        Clumsy.fails = 1
        driver.pipe("in", "k", "bad", at)
    (row,) = [row for row in driver.metrics if row["name"] == "quarantined-records"]
    assert (row["node"], row["reason"], row["total"]) == ("clumsy", "ValueError", 2)


def test_a_policy_can_be_given_to_any_node_by_name() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.map(lambda key, value: (key, 1 // value), name="one").map_values(lambda v: 1 // v, name="two").to("out")
    driver = TopologyTestDriver(builder.build(), on_error={"one": "quarantine", "two": "quarantine"})
    for number in (1, 0, 2, 1):
        driver.pipe("in", "k", number, 1)
    assert [record.value for record in driver.read("out")] == [1, 1]
    assert [(one.node, one.at.offset) for one in driver.dropped] == [("one", 1), ("two", 2)]


def test_a_policy_does_not_cover_failures_of_nodes_below() -> None:
    builder = StreamsBuilder()
    above = builder.stream("in").map_values(lambda value: value, name="above")
    above.map_values(lambda value: 1 // value, name="below").to("out")
    with refused("node-failed", node="below"):
        TopologyTestDriver(builder.build(), on_error={"above": "quarantine"}).pipe("in", "k", 0, 1)


HOPPING, SESSIONS = TimeWindows.of("10ms", grace="99ms").advance_by("5ms"), SessionWindows.of("3ms", grace="99ms")


@pytest.mark.parametrize("windows", [HOPPING, SESSIONS], ids=["windows", "sessions"])
def test_an_aggregate_that_fails_in_its_second_window_restores_the_first(windows: Any) -> None:
    def reduce(total: int, value: int) -> int:
        if total == value:
            raise ValueError("twice the same")
        return total + value

    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(windows).reduce(reduce, store="sums").to_stream().to("out")
    topology = builder.build()
    (node,) = [name for name, one in topology.nodes.items() if getattr(one, "stores", ())]
    driver = TopologyTestDriver(topology, on_error={node: "quarantine"})
    for value, at in ((3, 7), (4, 17), (4, 12), (4, 17), (5, 12)):
        before = driver.store("sums")
        driver.pipe("in", "k", value, at)
        if value == 4 and driver.dropped:
            assert driver.store("sums") == before
    assert [one.at.offset for one in driver.dropped] == ([2, 3] if windows is HOPPING else [3])


class LateFailing(Processor):
    where = ""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule("5ms", PunctuationType.STREAM_TIME, self.tell)
        if self.where == "init":
            raise ValueError("in init")

    def tell(self, now_ms: int) -> None:
        if self.where == "punctuate":
            raise ValueError("in punctuate")

    def close(self) -> None:
        if self.where == "close":
            raise ValueError("in close")


@pytest.mark.parametrize("where", ["init", "punctuate", "close"])
def test_errors_outside_a_record_always_fail_the_run(where: str) -> None:
    LateFailing.where = where
    builder = StreamsBuilder()
    builder.stream("in").process(LateFailing, name="late", on_error="quarantine").to("out")
    topology = builder.build()

    def play() -> None:
        driver = TopologyTestDriver(topology)
        driver.pipe("in", "k", 1, 10)
        driver.cut()

    with pytest.raises(DataError, match=f"node 'late' failed at .*ValueError: in {where}.*on_error is for records"):
        play()


@pytest.mark.parametrize("text", ["retry", "retry 0", "retry -1", "retry 1000", "ignore", "", 3, None, "fail "])
def test_an_invalid_policy_is_rejected(text: Any) -> None:
    with refused("on-error-policy-invalid"):
        OnError.parse(text)


def test_a_policy_that_cannot_be_kept_is_rejected() -> None:
    with refused("on-error-node-unknown", node="gone"):
        TopologyTestDriver(topology("fail"), on_error={"gone": "quarantine"})
    builder = StreamsBuilder()
    held = builder.stream("in").group_by_key().count(store="counts").suppress(until_time_limit("1s"), name="held")
    held.to_stream().to("out")
    with refused("on-error-node-without-code", node="held", store="held", kind="buffer"):
        TopologyTestDriver(builder.build(), on_error={"held": "quarantine"})


@pytest.mark.parametrize("on_error", ["fail", "retry 2", "quarantine"])
def test_memory_error_always_fails_the_run(on_error: str) -> None:
    class Spends(Processor):
        def process(self, record: Record) -> None:
            raise MemoryError

    builder = StreamsBuilder()
    builder.stream("in").process(Spends, name="spends", on_error=on_error).to("out")
    driver = TopologyTestDriver(builder.build())
    with refused("node-out-of-memory", node="spends", position="in offset 0", partition=0):
        driver.pipe("in", "a", 1, 1)
