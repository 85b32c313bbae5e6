"""An alert for each window of ten minutes, every five, whose mean temperature is below 45."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from rewindow import Count, StreamsBuilder, Sum, TimeWindows, Topology, Windowed

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/hopping-windows/ksql/code/test"
INPUT = {
    "temperature-readings": """
{"ID": "1", "TIMESTAMP": "2020-01-15 02:20:30", "READING": 50}
{"ID": "1", "TIMESTAMP": "2020-01-15 02:25:30", "READING": 45}
{"ID": "1", "TIMESTAMP": "2020-01-15 02:30:30", "READING": 40}
{"ID": "1", "TIMESTAMP": "2020-01-15 02:35:30", "READING": 45}
{"ID": "1", "TIMESTAMP": "2020-01-15 02:40:30", "READING": 50}
{"ID": "1", "TIMESTAMP": "2020-01-15 02:45:30", "READING": 55}
{"ID": "1", "TIMESTAMP": "2020-01-15 02:50:30", "READING": 60}
""",
}
LOGS = {
    "temperature-readings": {"key": "ID", "timestamp": "TIMESTAMP"},
}
EXPECTED = {
    "alerts": """
{"key": "1", "start_period": "02:25:00", "end_period": "02:35:00", "avg_reading": 42, "_timestamp": 1579055430000}
{"key": "1", "start_period": "02:30:00", "end_period": "02:40:00", "avg_reading": 40, "_timestamp": 1579055430000}
{"key": "1", "start_period": "02:30:00", "end_period": "02:40:00", "avg_reading": 42, "_timestamp": 1579055730000}
""",
}


class Alert(NamedTuple):
    start_period: str
    end_period: str
    avg_reading: int


def text(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S")


def alert(windowed: Windowed, totals: Any) -> Alert:
    window = windowed.window
    return Alert(text(window.start_ms), text(window.end_ms), totals.sum // totals.count)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("temperature-readings")
        .group_by_key()
        .windowed_by(TimeWindows.of("10m", grace="24h").advance_by("5m"))
        .aggregate({"sum": Sum("READING"), "count": Count()}, store="readings-per-window")
        .map_values(alert, with_key=True)
        .filter(lambda _, alert: alert.avg_reading < 45)
        .to_stream()
        .filter(lambda _, alert: alert is not None)
        .select_key(lambda windowed, _: windowed.key, key=str)
        .to("alerts")
    )
    return builder.build()
