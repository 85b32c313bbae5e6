"""Clicks without those that repeat an address within two minutes. `at` is the published `timestamp`, a text."""

from __future__ import annotations

from rewindow import FixedKeyProcessor, ProcessorContext, Record, StreamsBuilder, Topology, window_store

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/finding-distinct/kstreams/code/tutorial-steps/dev"
INPUT = {
    "clicks": """
{"ip": "10.0.0.1", "url": "https://docs.confluent.io/current/tutorials/examples/kubernetes/gke-base/docs/index.html", "at": "2019-09-16T14:53:43+00:00"}
{"ip": "10.0.0.2", "url": "https://www.confluent.io/hub/confluentinc/kafka-connect-datagen", "at": "2019-09-16T14:53:43+00:01"}
{"ip": "10.0.0.3", "url": "https://www.confluent.io/hub/confluentinc/kafka-connect-datagen", "at": "2019-09-16T14:53:43+00:03"}
{"ip": "10.0.0.1", "url": "https://docs.confluent.io/current/tutorials/examples/kubernetes/gke-base/docs/index.html", "at": "2019-09-16T14:53:43+00:00"}
{"ip": "10.0.0.2", "url": "https://www.confluent.io/hub/confluentinc/kafka-connect-datagen", "at": "2019-09-16T14:53:43+00:01"}
{"ip": "10.0.0.3", "url": "https://www.confluent.io/hub/confluentinc/kafka-connect-datagen", "at": "2019-09-16T14:53:43+00:03"}
""",
}
LOGS = {"clicks": {"key": "ip", "timestamp": "tests.public_cases.times:first"}}
EXPECTED = {
    "distinct-clicks": """
{"ip": "10.0.0.1", "url": "https://docs.confluent.io/current/tutorials/examples/kubernetes/gke-base/docs/index.html", "at": "2019-09-16T14:53:43+00:00"}
{"ip": "10.0.0.2", "url": "https://www.confluent.io/hub/confluentinc/kafka-connect-datagen", "at": "2019-09-16T14:53:43+00:01"}
{"ip": "10.0.0.3", "url": "https://www.confluent.io/hub/confluentinc/kafka-connect-datagen", "at": "2019-09-16T14:53:43+00:03"}
""",
}


MINUTE_MS = 60_000


class FindDistinct(FixedKeyProcessor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.seen = context.store("seen")

    def process(self, record: Record) -> None:
        now_ms = self.context.stream_time_ms
        is_new = not list(self.seen.fetch_range(record.key, now_ms - MINUTE_MS, now_ms + MINUTE_MS))
        self.seen.put(record.key, now_ms, now_ms)
        if is_new:
            self.context.forward(record)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    clicks = builder.stream("clicks")
    seen = window_store("seen", size="2m", retention="2m", key=str, value=int)
    clicks.process_values(FindDistinct, name="distinct", stores=[seen], value=clicks.value).to("distinct-clicks")
    return builder.build()
