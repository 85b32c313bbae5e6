"""How many alerts each sensor sent in ten seconds, once it is certain."""

from __future__ import annotations

from rewindow import StreamsBuilder, TimeWindows, Topology, until_window_closes

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/window-final-result/kstreams/code/tutorial-steps/dev"
INPUT = {
    "pressure-alerts": """
{"id": "101", "datetime": "2019-09-21T05:45:02.+0200", "pressure": 30}
{"id": "101", "datetime": "2019-09-21T05:45:02.+0200", "pressure": 30}
{"id": "101", "datetime": "2019-09-21T05:45:02.+0200", "pressure": 30}
{"id": "102", "datetime": "2019-09-21T05:45:02.+0200", "pressure": 30}
{"id": "101", "datetime": "2019-09-21T05:45:02.+0200", "pressure": 30}
{"id": "101", "datetime": "2019-09-21T05:45:07.+0200", "pressure": 30}
{"id": "101", "datetime": "2019-09-21T05:44:13.+0200", "pressure": 30}
{"id": "102", "datetime": "2019-09-21T05:45:13.+0200", "pressure": 30}
{"id": "102", "datetime": "2019-09-21T05:43:23.+0200", "pressure": 30}
{"id": "301", "datetime": "2019-09-21T12:45:23.+0900", "pressure": 30}
{"id": "301", "datetime": "2019-09-21T12:45:24.+0900", "pressure": 30}
{"id": "XXX", "datetime": "2019-09-21T06:00:00.+0200", "pressure": 30}
""",
}
LOGS = {
    "pressure-alerts": {
        "source": {
            "schema": "id STRING, datetime TIMESTAMP, pressure BIGINT",
            "options": {"time_format": "yyyy-MM-dd'T'HH:mm:ss.XX"},
        },
        "key": "id",
        "timestamp": "datetime",
    },
}
EXPECTED = {
    "finals": """
{"value": 5}
{"value": 1}
{"value": 1}
{"value": 2}
""",
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("pressure-alerts")
        .group_by_key()
        .windowed_by(TimeWindows.of("10s", grace="20s").advance_by("10s"))
        .count(store="alerts")
        .suppress(until_window_closes())
        .to_stream()
        .to("finals")
    )
    return builder.build()
