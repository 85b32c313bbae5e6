"""Logins of three applications in one aggregate. The published rows are JSON objects; here they are their texts."""

from __future__ import annotations

import json
from typing import Any

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/cogrouping-streams/kstreams/code"
INPUT = {
    "app-one": """
{"appId": "one", "userId": "Ted", "time": 12456}
{"appId": "one", "userId": "Ted", "time": 12457}
{"appId": "one", "userId": "Carol", "time": 12458}
{"appId": "one", "userId": "Carol", "time": 12458}
{"appId": "one", "userId": "Alice", "time": 12458}
{"appId": "one", "userId": "Carol", "time": 12458}
""",
    "app-two": """
{"appId": "two", "userId": "Bob", "time": 12456}
{"appId": "two", "userId": "Carol", "time": 12457}
{"appId": "two", "userId": "Ted", "time": 12458}
{"appId": "two", "userId": "Carol", "time": 12459}
""",
    "app-three": """
{"appId": "three", "userId": "Bob", "time": 12456}
{"appId": "three", "userId": "Alice", "time": 12457}
{"appId": "three", "userId": "Alice", "time": 12458}
{"appId": "three", "userId": "Carol", "time": 12459}
""",
}
LOGS = {
    "app-one": {"key": "appId", "timestamp": "time"},
    "app-two": {"key": "appId", "timestamp": "time"},
    "app-three": {"key": "appId", "timestamp": "time"},
}
EXPECTED = {
    "logins": """
{"appId": "one", "value": "{\\"one\\": {\\"Alice\\": 1, \\"Carol\\": 3, \\"Ted\\": 2}}"}
{"appId": "two", "value": "{\\"two\\": {\\"Bob\\": 1, \\"Carol\\": 2, \\"Ted\\": 1}}"}
{"appId": "three", "value": "{\\"three\\": {\\"Alice\\": 2, \\"Bob\\": 1, \\"Carol\\": 1}}"}
""",
}
LAST_OF = "appId"


Rollup = dict[str, dict[str, int]]


def add(app: str, login: Any, rollup: Rollup) -> Rollup:
    logins = rollup.setdefault(app, {})
    logins[login.userId] = logins.get(login.userId, 0) + 1
    return rollup


def text(rollup: Rollup) -> str:
    return json.dumps(rollup, sort_keys=True)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    one, two, three = (builder.stream(f"app-{app}").group_by_key() for app in ("one", "two", "three"))
    rollups = one.cogroup(add).cogroup(two, add).cogroup(three, add).aggregate(dict, store="rollups", value=Rollup)
    rollups.to_stream().map_values(text, value=str).to("logins")
    return builder.build()
