"""Temperatures with their local times in Denver."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/connect-sink-timestamp/ksql/code/tutorial-steps/dev"
INPUT = {
    "temperature-readings": """
{"key": null, "eventTime": 1615566394751, "temperature": 100}
{"key": null, "eventTime": 1615566401534, "temperature": 132}
{"key": null, "eventTime": 1615567732840, "temperature": 144}
{"key": null, "eventTime": 1615567735866, "temperature": 103}
{"key": null, "eventTime": 1615567736875, "temperature": 102}
{"key": null, "eventTime": 1615567738890, "temperature": 101}
""",
}
LOGS = {
    "temperature-readings": {"key": "key", "columns": {"measured": "eventTime"}, "timestamp": "eventTime"},
}
EXPECTED = {
    "temperature-readings-mt": """
{"TEMPERATURE": 100, "EVENTTIME_MT": "2021-03-12T09:26:34.751"}
{"TEMPERATURE": 132, "EVENTTIME_MT": "2021-03-12T09:26:41.534"}
{"TEMPERATURE": 144, "EVENTTIME_MT": "2021-03-12T09:48:52.840"}
{"TEMPERATURE": 103, "EVENTTIME_MT": "2021-03-12T09:48:55.866"}
{"TEMPERATURE": 102, "EVENTTIME_MT": "2021-03-12T09:48:56.875"}
{"TEMPERATURE": 101, "EVENTTIME_MT": "2021-03-12T09:48:58.890"}
""",
}


class Reading(NamedTuple):
    TEMPERATURE: int
    EVENTTIME_MT: str


def reading(row: Any) -> Reading:
    local = datetime.fromtimestamp(row.measured / 1000, ZoneInfo("America/Denver"))
    return Reading(row.temperature, local.replace(tzinfo=None).isoformat(timespec="milliseconds"))


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("temperature-readings").map_values(reading).to("temperature-readings-mt")
    return builder.build()
