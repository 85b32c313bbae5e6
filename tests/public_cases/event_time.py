"""Temperatures with the times at which they were measured."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/time-concepts/ksql/code/tutorial-steps/dev"
INPUT = {
    "deviceEvents": """
{"key": null, "temperature": 100, "eventTime": 1606785578301}
{"key": null, "temperature": 101, "eventTime": 1606785579482}
{"key": null, "temperature": 102, "eventTime": 1606785580492}
{"key": null, "temperature": 103, "eventTime": 1606785581501}
{"key": null, "temperature": 104, "eventTime": 1606785582512}
{"key": null, "temperature": 105, "eventTime": 1606785583521}
{"key": null, "temperature": 106, "eventTime": 1606785584528}
{"key": null, "temperature": 107, "eventTime": 1606785585534}
{"key": null, "temperature": 108, "eventTime": 1606785586544}
{"key": null, "temperature": 109, "eventTime": 1606785587552}
""",
}
LOGS = {
    "deviceEvents": {"key": "key", "columns": {"measured": "eventTime"}, "timestamp": "eventTime"},
}
EXPECTED = {
    "readings": """
{"TEMPERATURE": 100, "EVENTTIME": 1606785578301, "_timestamp": 1606785578301}
{"TEMPERATURE": 101, "EVENTTIME": 1606785579482, "_timestamp": 1606785579482}
{"TEMPERATURE": 102, "EVENTTIME": 1606785580492, "_timestamp": 1606785580492}
{"TEMPERATURE": 103, "EVENTTIME": 1606785581501, "_timestamp": 1606785581501}
{"TEMPERATURE": 104, "EVENTTIME": 1606785582512, "_timestamp": 1606785582512}
{"TEMPERATURE": 105, "EVENTTIME": 1606785583521, "_timestamp": 1606785583521}
{"TEMPERATURE": 106, "EVENTTIME": 1606785584528, "_timestamp": 1606785584528}
{"TEMPERATURE": 107, "EVENTTIME": 1606785585534, "_timestamp": 1606785585534}
{"TEMPERATURE": 108, "EVENTTIME": 1606785586544, "_timestamp": 1606785586544}
{"TEMPERATURE": 109, "EVENTTIME": 1606785587552, "_timestamp": 1606785587552}
""",
}


class Reading(NamedTuple):
    TEMPERATURE: int
    EVENTTIME: int


def reading(row: Any) -> Reading:
    return Reading(row.temperature, row.measured)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("deviceEvents").map_values(reading).to("readings")
    return builder.build()
