"""The mean temperature of each sliding window of half a second. The published times are whole seconds, so all are equal."""

from __future__ import annotations

from typing import Any

from rewindow import Count, SlidingWindows, StreamsBuilder, Sum, Topology

SOURCE = "https://github.com/confluentinc/tutorials/tree/0cadb2292636b7e71323b9b39b49f86509196f77/sliding-windows/kstreams/src/test/java/io/confluent/developer"
INPUT = {
    "temp-readings": """
{"device_id": "device-1", "temp": 80.0, "timestamp": 1600000000}
{"device_id": "device-1", "temp": 90.0, "timestamp": 1600000000}
{"device_id": "device-1", "temp": 95.0, "timestamp": 1600000000}
{"device_id": "device-1", "temp": 100.0, "timestamp": 1600000000}
""",
}
LOGS = {
    "temp-readings": {"key": "device_id", "timestamp": "timestamp", "units": {"timestamp": "s"}},
}
EXPECTED = {
    "output-topic": """
{"device_id": "device-1", "value": 80.0}
{"device_id": "device-1", "value": 85.0}
{"device_id": "device-1", "value": 88.33}
{"device_id": "device-1", "value": 91.25}
""",
}


def mean(totals: Any) -> float:
    return round(totals.sum / totals.count, 2)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    readings = builder.stream("temp-readings").group_by_key().windowed_by(SlidingWindows.of("500ms", grace="100ms"))
    totals = readings.aggregate({"sum": Sum("temp"), "count": Count()}, store="temperatures")
    totals.map_values(mean).to_stream().to("output-topic")
    return builder.build()
