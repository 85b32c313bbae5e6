"""An aggregate whose rows are deleted a minute of stream time after their last update. Its records and rows are those of `table_ttl`."""

from __future__ import annotations

from typing import NamedTuple

from rewindow import Processor, ProcessorContext, PunctuationType, Record, StreamsBuilder, Topology, key_value_store
from tests.public_cases import table_ttl

SOURCE = "https://github.com/confluentinc/tutorials/tree/0cadb2292636b7e71323b9b39b49f86509196f77/schedule-ktable-ttl-aggregate/kstreams/src/test/java/io/confluent/developer"
INPUT, LOGS, EXPECTED = table_ttl.INPUT, table_ttl.LOGS, table_ttl.EXPECTED


class Update(NamedTuple):
    text: str | None
    is_deleted: bool


class Expire(Processor):
    """Forward updates, and a deletion for each key whose last update is older than a minute."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.updated = context.store("updated")
        context.schedule("5s", PunctuationType.STREAM_TIME, self.expire, name="expire", start_time="0s")

    def process(self, record: Record) -> None:
        self.updated.put(record.key, record.timestamp)
        self.context.forward(record.with_value(Update(record.value, False)))

    def expire(self, now_ms: int) -> None:
        for key, updated_ms in list(self.updated.all()):
            if updated_ms < now_ms - 60_000:
                self.updated.delete(key)
                self.context.forward(Record(key, Update(None, True), 0))


def added(_key: str, update: Update, texts: list[str]) -> list[str] | None:
    return None if update.is_deleted else [*texts, update.text or ""]


def both(left: str, right: list[str] | None) -> str:
    return f"{left} {right[-1]}" if right else left


def build_topology() -> Topology:
    builder = StreamsBuilder()
    store = key_value_store("updated", key=str, value=int)
    rows = builder.stream("input-topic-for-table")
    updates = rows.process(Expire, name="expire", stores=[store], key=rows.key, value=Update)
    table = updates.group_by_key().aggregate(list, added, store="events", value=list[str])
    builder.stream("input-topic-for-stream").left_join(table, both).to("output-topic")
    return builder.build()
