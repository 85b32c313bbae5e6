"""Sensors; a line with a text instead of true or false goes to the quarantine."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/deserialization-errors/ksql/code"
INPUT = {
    "SENSORS_RAW": """
{"ID": "e7f45046-ad13-404c-995e-1eca16742801", "TIMESTAMP": "2020-01-15 02:20:30", "ENABLED": true}
{"ID": "835226cf-caf6-4c91-a046-359f1d3a6e2e", "TIMESTAMP": "2020-01-15 02:25:30", "ENABLED": true}
{"ID": "1a076a64-4a84-40cb-a2e8-2190f3b37465", "TIMESTAMP": "2020-01-15 02:30:30", "ENABLED": "true"}
""",
}
LOGS = {
    "SENSORS_RAW": {
        "source": {"schema": "ID STRING, TIMESTAMP STRING, ENABLED BOOLEAN"},
        "unreadable": "skip",
        "key": "ID",
        "columns": {"sent": "TIMESTAMP"},
        "timestamp": "TIMESTAMP",
    },
}
EXPECTED = {
    "SENSORS": """
{"ID": "e7f45046-ad13-404c-995e-1eca16742801", "TIMESTAMP": "2020-01-15 02:20:30", "ENABLED": true, "_timestamp": 1579054830000}
{"ID": "835226cf-caf6-4c91-a046-359f1d3a6e2e", "TIMESTAMP": "2020-01-15 02:25:30", "ENABLED": true, "_timestamp": 1579055130000}
""",
}


class Sensor(NamedTuple):
    TIMESTAMP: str
    ENABLED: bool


def sensor(raw: Any) -> Sensor:
    return Sensor(raw.sent, raw.ENABLED)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("SENSORS_RAW").map_values(sensor).to("SENSORS")
    return builder.build()
