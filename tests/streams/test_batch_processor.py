"""`BatchProcessor`: what `process_batch` gets and may do, and what is refused with which words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from rewindow import (
    Batch,
    BatchContext,
    BatchProcessor,
    Processor,
    PunctuationType,
    Record,
    StreamsBuilder,
    To,
    Topology,
    key_value_store,
)
from rewindow.errors import DataError, RewindowError, TopologyError
from rewindow.streams.batch_processor import batch_limits
from rewindow.streams.processor import ProcessorContext
from rewindow.testing import Epoch, LocalReplay, TopologyTestDriver
from tests.refusals import Refusal, containing, refused

Action = Callable[[BatchContext, Batch], Any]
RECORDS = tuple(("in", f"k{number % 3}", number, 10 * number) for number in range(20))


def topology(supplier: Callable[[], Processor], **options: Any) -> Topology:
    builder = StreamsBuilder()
    store = key_value_store("seen", key=str, value=int)
    builder.stream("in").process(supplier, name="p", stores=[store], **options).to("out")
    return builder.build()


def doing(action: Action) -> type[BatchProcessor]:
    class Doing(BatchProcessor):
        def process_batch(self, batch: Batch) -> None:
            result = action(self.context, batch)
            assert result is None

    return Doing


def replayed(action: Action, **options: Any) -> list[tuple[Any, ...]]:
    replay = LocalReplay(topology(doing(action), **options))
    replay.run([Epoch(RECORDS)])
    return [tuple(sent.record[:3]) for sent in replay.sent]


class Sizes(BatchProcessor):
    """Says how many records each batch has, which no job may."""

    def init(self, context: BatchContext) -> None:
        context.schedule("50ms", PunctuationType.STREAM_TIME, self.fire, time_shift="0s")

    def process_batch(self, batch: Batch) -> None:
        batch.forward(len(batch) - 1, Record("size", len(batch)))

    def fire(self, now_ms: int) -> None:
        self.context.forward(Record("fired", now_ms))


def test_a_batch_ends_where_a_punctuation_is_due_and_with_its_epoch() -> None:
    replay = LocalReplay(topology(Sizes))
    replay.run([Epoch(RECORDS[:17]), Epoch(RECORDS[17:])])
    told = [tuple(sent.record[:2]) for sent in replay.sent]
    expected = [("size", 1), ("fired", 0), ("size", 5), ("fired", 50), ("size", 5), ("fired", 100), ("size", 5)]
    assert told == [*expected, ("fired", 150), ("size", 1), ("size", 3)]


def test_records_arrive_as_columns_and_outputs_leave_in_the_order_of_the_records() -> None:
    def act(context: BatchContext, batch: Batch) -> None:
        assert (batch.topic, batch.partition, context.partition, len(batch)) == ("in", 0, 0, 20)
        assert list(batch) == [Record(*record[1:]) for record in RECORDS]
        assert list(batch.offsets) == list(range(20))
        assert list(batch.stream_times_ms) == list(batch.timestamps)
        for index in reversed(range(0, 20, 5)):
            batch.forward(index, Record(batch.keys[index], "one"))
            batch.forward(index, Record(batch.keys[index], "two"), to=To.all().with_timestamp(7))
        batch.forward_many([1, 6], ["a", "b"], ["many", "more"])

    sent = replayed(act)
    assert sent[:3] == [("k0", "one", 0), ("k0", "two", 7), ("a", "many", 10)]
    assert [value for _, value, _ in sent] == ["one", "two", "many", "one", "two", "more", "one", "two", "one", "two"]


def test_what_was_forwarded_can_be_changed_afterwards() -> None:
    def act(context: BatchContext, batch: Batch) -> None:
        del context
        seen: list[int] = []
        for index, value in enumerate(batch.values):
            seen.append(value)
            batch.forward(index, Record("k", seen))

    assert [value for _, value, _ in replayed(act)] == [list(range(number + 1)) for number in range(20)]


def test_the_test_driver_gives_batches_of_one() -> None:
    driver = TopologyTestDriver(topology(doing(lambda _, batch: batch.forward(0, Record("size", len(batch))))))
    driver.pipe_all(RECORDS)
    assert driver.read("out") == [Record("size", 1, record[3]) for record in RECORDS]


REFUSED: dict[str, tuple[Action, str]] = {
    "forward": (lambda context, _: context.forward(Record("k", 1)), r"batch\.forward\(index, record\)"),
    "forward_many": (lambda context, _: context.forward_many(["k"], [1]), r"batch\.forward_many\(indexes"),
    "timestamp": (lambda context, _: context.timestamp, r"batch\.timestamps\[index\]"),
    "stream time": (lambda context, _: context.stream_time_ms, r"batch\.stream_times_ms\[index\]"),
    "wall clock": (lambda context, _: context.wall_clock_ms, "derive the class from Processor"),
    "metadata": (lambda context, _: context.record_metadata, r"batch\.offsets\[index\]"),
    "random": (lambda context, _: context.random(), "derive the class from Processor"),
    "uuid": (lambda context, _: context.uuid(), "derive the class from Processor"),
    "key": (lambda context, _: context.idempotency_key(), "derive the class from Processor"),
    "schedule": (lambda context, _: context.schedule("1s", PunctuationType.STREAM_TIME, print), "schedule in init"),
    "drop": (lambda context, batch: context.drop(next(iter(batch)), "late", reason="x"), r"batch\.drop\(index"),
    "an index too large": (lambda _, batch: batch.forward(20, Record("k", 1)), "index 20 of a batch of 20 records"),
    "a negative index": (lambda _, batch: batch.forward(-1, Record("k", 1)), "index -1 of a batch"),
    "an index that is no int": (lambda _, batch: batch.forward("0", Record("k", 1)), "give ints"),  # type: ignore[arg-type]
    "no record": (lambda _, batch: batch.forward(0, ("k", 1)), "give forward"),  # type: ignore[arg-type]
    "a float as time": (lambda _, batch: batch.forward(0, Record("k", 1, 1.5)), "epoch milliseconds"),  # type: ignore[arg-type]
    "an unknown child": (lambda _, batch: batch.forward(0, Record("k", 1), to=To.child("x")), "no child 'x'"),
    "uneven columns": (lambda _, batch: batch.forward_many([0, 1], ["k"], [1]), "columns of 2, 1, 1, 2 items"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_a_current_record_is_refused(name: str) -> None:
    action, says = REFUSED[name]
    with pytest.raises(DataError, match=says) as caught:
        replayed(action)
    assert "in, a batch of the offsets 0 to 19, partition 0, node 'p'" in str(caught.value)


def test_a_batch_cannot_be_used_later() -> None:
    batches: list[Batch] = []

    def act(context: BatchContext, batch: Batch) -> None:
        del context
        for earlier in batches:
            earlier.forward(0, Record("k", 1))
        batches.append(batch)

    replay = LocalReplay(topology(doing(act)))
    with refused("forward-after-process-batch"):
        replay.run([Epoch(RECORDS), Epoch(RECORDS)])


def test_results_are_refused() -> None:
    class Returns(BatchProcessor):
        def process_batch(self, batch: Batch) -> None:
            return batch.keys  # type: ignore[return-value]

    with refused("process-returned-value", type="tuple", call=containing("batch.forward")):
        LocalReplay(topology(Returns)).run([Epoch(RECORDS)])


class Both(BatchProcessor):
    def process(self, record: Record) -> None:
        """Never called."""

    def process_batch(self, batch: Batch) -> None:
        """Handle a batch."""


class NoBase(Processor):
    def process_batch(self, batch: Batch) -> None:
        """Never called."""


class Misspelt(BatchProcessor):
    def proces_batch(self, batch: Batch) -> None:
        """Never called."""


class Nothing(BatchProcessor):
    """Has no method of its own."""


class Yields(BatchProcessor):
    def process_batch(self, batch: Batch) -> Any:
        yield batch


class TakesRecords(BatchProcessor):
    def process_batch(self, records: Any, context: Any) -> None:  # type: ignore[override]
        """Never called."""


@pytest.mark.parametrize(
    ("supplier", "refusal"),
    [
        (Both, refused("process-beside-process-batch")),
        (NoBase, refused("process-batch-never-called")),
        (Misspelt, refused("process-batch-method-missing", fix="rename proces_batch to process_batch")),
        (Nothing, refused("process-batch-method-missing", fix=containing("define it"))),
        (Yields, refused("process-method-never-runs", call=containing("batch.forward"))),
        (TakesRecords, refused("function-parameters-wrong", arguments="self, batch")),
    ],
)
def test_a_class_that_would_do_nothing_is_refused(supplier: type[Processor], refusal: Refusal) -> None:
    with refusal:
        topology(supplier)


@pytest.mark.parametrize("supplier", [Both, NoBase])
def test_it_is_refused_when_a_function_makes_it(supplier: type[Processor]) -> None:
    with pytest.raises(TopologyError, match="process_batch"):
        TopologyTestDriver(topology(partial(supplier)))


def test_explain_names_what_keeps_batches_at_one_record() -> None:
    def reason(build: Topology, *policies: str) -> str:
        return batch_limits(build.sub_topologies()[0], policies, keeps_dropped=False)["p"]

    quiet = doing(lambda *_: None)
    assert not reason(topology(quiet))
    assert reason(topology(quiet), "p") == "its error policy handles records one by one"
    builder = StreamsBuilder()
    stream = builder.stream("in").filter(lambda _key, value: bool(value), name="some")
    store = key_value_store("seen", key=str, value=int)
    stream.process(quiet, name="p", stores=[store]).to("out")
    assert reason(builder.build()) == "it gets its records from some and not from a topic"
    builder = StreamsBuilder()
    builder.stream("in").process(quiet, name="p", stores=[store]).process(Sizes, name="q", stores=["seen"]).to("out")
    assert reason(builder.build()) == "a node below it uses its store 'seen'"


def test_a_policy_gets_one_record_at_a_time_and_its_store_is_rolled_back() -> None:
    class Fails(BatchProcessor):
        def process_batch(self, batch: Batch) -> None:
            (key,), (value,) = batch.keys, batch.values
            self.context.store("seen").put_many({key: value})
            batch.forward(0, Record(key, value))
            if value % 7 == 3:
                self.context.store("seen").delete_many([key])
                message = "seven"
                raise ValueError(message)

    replay = LocalReplay(topology(Fails, on_error="quarantine"))
    replay.run([Epoch(RECORDS)])
    assert [dropped.at.offset for dropped in replay.dropped] == [3, 10, 17]
    assert [sent.record.value for sent in replay.sent] == [n for n in range(20) if n % 7 != 3]
    assert dict(replay.task(0, 0).stores["seen"].rows()) == {"k0": 18, "k1": 19, "k2": 14}


def test_stores_take_many_rows_at_once() -> None:
    def act(context: ProcessorContext, batch: Batch) -> None:
        store = context.store("seen")
        store.put_many(dict.fromkeys(batch.keys, 1))
        store.put_many({"k0": None, "k1": 2, "new": 3})
        assert store.get_many(["k0", "k1", "k2", "new"]) == [None, 2, 1, 3]
        store.delete_many(["k1", "unknown"])
        assert dict(store.all()) == {"k2": 1, "new": 3}
        for wrong in ({"k": "text"}, {1: 1}, [("k", 1)]):
            with pytest.raises(RewindowError, match=r"does not fit the type long|cannot have the key 1|takes a dict"):
                store.put_many(wrong)
        with refused("delete-many-without-list"):
            store.delete_many(iter(["k2"]))

    assert not replayed(act)
