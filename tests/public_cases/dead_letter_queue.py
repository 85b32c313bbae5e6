"""Events of sports; those without a ball, and texts that are no JSON, go to the quarantine."""

from __future__ import annotations

import json

from rewindow import FixedKeyProcessor, Record, StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/tutorials/tree/0cadb2292636b7e71323b9b39b49f86509196f77/kafka-streams-dead-letter-queue/kstreams/src/test/java/io/confluent/developer"
INPUT = {
    "input": """
{"key": "baseball", "value": "{\\"sport\\": \\"baseball\\", \\"ball\\": {\\"shape\\": \\"round\\", \\"dimensions\\": {\\"diameter\\": \\"2.9in\\", \\"weight\\": \\"5oz\\"}}}"}
{"key": "soccer", "value": "{\\"sport\\": \\"soccer\\", \\"ball\\": {\\"shape\\": \\"spherical\\", \\"dimensions\\": {\\"diameter\\": \\"22cm\\", \\"weight\\": \\"450g\\"}}}"}
{"key": "swimming", "value": "{\\"sport\\": \\"swimming\\"}"}
{"key": "junk", "value": "not valid json"}
{"key": "running", "value": "{\\"sport\\": \\"running\\", \\"ball\\": null}"}
{"key": "tennis", "value": "{\\"sport\\": \\"tennis\\", \\"ball\\": {\\"shape\\": \\"round\\", \\"dimensions\\": {\\"diameter\\": \\"6.7cm\\", \\"weight\\": \\"58g\\"}}}"}
""",
}
LOGS = {"input": {"key": "key", "value": "value", "timestamp": "tests.public_cases.times:first"}}
EXPECTED = {
    "output": """
{"key": "baseball", "value": "{\\"sport\\": \\"baseball\\", \\"ball\\": {\\"shape\\": \\"round\\", \\"dimensions\\": {\\"diameter\\": \\"2.9in\\", \\"weight\\": \\"5oz\\"}}}"}
{"key": "soccer", "value": "{\\"sport\\": \\"soccer\\", \\"ball\\": {\\"shape\\": \\"spherical\\", \\"dimensions\\": {\\"diameter\\": \\"22cm\\", \\"weight\\": \\"450g\\"}}}"}
{"key": "tennis", "value": "{\\"sport\\": \\"tennis\\", \\"ball\\": {\\"shape\\": \\"round\\", \\"dimensions\\": {\\"diameter\\": \\"6.7cm\\", \\"weight\\": \\"58g\\"}}}"}
""",
}
QUARANTINED = """
{"key": "swimming", "value": "{\\"sport\\": \\"swimming\\"}"}
{"key": "junk", "value": "not valid json"}
{"key": "running", "value": "{\\"sport\\": \\"running\\", \\"ball\\": null}"}
"""


class Check(FixedKeyProcessor):
    def process(self, record: Record) -> None:
        if json.loads(record.value).get("ball") is None:
            raise ValueError("no ball")
        self.context.forward(record)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    events = builder.stream("input")
    events.process_values(Check, name="check", value=str, on_error="quarantine").to("output")
    return builder.build()
