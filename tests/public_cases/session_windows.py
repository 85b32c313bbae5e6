"""Clicks of each visit: a visit that grows replaces the row that it had before."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from rewindow import SessionWindows, StreamsBuilder, Topology, Windowed

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/session-windows/ksql/code/test"
INPUT = {
    "clicks": """
{"IP": "51.56.119.117", "URL": "/etiam/justo/etiam/pretium/iaculis.xml", "TIMESTAMP": "2019-07-18T10:00:00Z"}
{"IP": "51.56.119.117", "URL": "/nullam/orci/pede/venenatis.json", "TIMESTAMP": "2019-07-18T10:01:00Z"}
{"IP": "53.170.33.192", "URL": "/mauris/morbi/non.jpg", "TIMESTAMP": "2019-07-18T10:01:31Z"}
{"IP": "51.56.119.117", "URL": "/convallis/nunc/proin.jsp", "TIMESTAMP": "2019-07-18T10:01:36Z"}
{"IP": "53.170.33.192", "URL": "/vestibulum/vestibulum/ante/ipsum/primis/in.json", "TIMESTAMP": "2019-07-18T10:02:00Z"}
{"IP": "51.56.119.117", "URL": "/vehicula/consequat/morbi/a/ipsum/integer/a.jpg", "TIMESTAMP": "2019-07-18T11:03:21Z"}
{"IP": "51.56.119.117", "URL": "/pede/venenatis.jsp", "TIMESTAMP": "2019-07-18T11:03:50Z"}
{"IP": "53.170.33.192", "URL": "/nec/euismod/scelerisque/quam.xml", "TIMESTAMP": "2019-07-18T11:40:00Z"}
{"IP": "53.170.33.192", "URL": "/ligula/nec/sem/duis.jsp", "TIMESTAMP": "2019-07-18T11:40:09Z"}
""",
}
LOGS = {
    "clicks": {"key": "IP", "timestamp": "TIMESTAMP"},
}
EXPECTED = {
    "ip-sessions": """
{"IP": "51.56.119.117", "session_start_ts": "2019-07-18 10:00:00", "session_end_ts": "2019-07-18 10:00:00", "click_count": 1, "session_length_ms": 0, "_timestamp": 1563444000000}
{"IP": "51.56.119.117", "session_start_ts": null, "session_end_ts": null, "click_count": null, "session_length_ms": null, "_timestamp": 1563444000000}
{"IP": "51.56.119.117", "session_start_ts": "2019-07-18 10:00:00", "session_end_ts": "2019-07-18 10:01:00", "click_count": 2, "session_length_ms": 60000, "_timestamp": 1563444060000}
{"IP": "53.170.33.192", "session_start_ts": "2019-07-18 10:01:31", "session_end_ts": "2019-07-18 10:01:31", "click_count": 1, "session_length_ms": 0, "_timestamp": 1563444091000}
{"IP": "51.56.119.117", "session_start_ts": null, "session_end_ts": null, "click_count": null, "session_length_ms": null, "_timestamp": 1563444060000}
{"IP": "51.56.119.117", "session_start_ts": "2019-07-18 10:00:00", "session_end_ts": "2019-07-18 10:01:36", "click_count": 3, "session_length_ms": 96000, "_timestamp": 1563444096000}
{"IP": "53.170.33.192", "session_start_ts": null, "session_end_ts": null, "click_count": null, "session_length_ms": null, "_timestamp": 1563444091000}
{"IP": "53.170.33.192", "session_start_ts": "2019-07-18 10:01:31", "session_end_ts": "2019-07-18 10:02:00", "click_count": 2, "session_length_ms": 29000, "_timestamp": 1563444120000}
{"IP": "51.56.119.117", "session_start_ts": "2019-07-18 11:03:21", "session_end_ts": "2019-07-18 11:03:21", "click_count": 1, "session_length_ms": 0, "_timestamp": 1563447801000}
{"IP": "51.56.119.117", "session_start_ts": null, "session_end_ts": null, "click_count": null, "session_length_ms": null, "_timestamp": 1563447801000}
{"IP": "51.56.119.117", "session_start_ts": "2019-07-18 11:03:21", "session_end_ts": "2019-07-18 11:03:50", "click_count": 2, "session_length_ms": 29000, "_timestamp": 1563447830000}
{"IP": "53.170.33.192", "session_start_ts": "2019-07-18 11:40:00", "session_end_ts": "2019-07-18 11:40:00", "click_count": 1, "session_length_ms": 0, "_timestamp": 1563450000000}
{"IP": "53.170.33.192", "session_start_ts": null, "session_end_ts": null, "click_count": null, "session_length_ms": null, "_timestamp": 1563450000000}
{"IP": "53.170.33.192", "session_start_ts": "2019-07-18 11:40:00", "session_end_ts": "2019-07-18 11:40:09", "click_count": 2, "session_length_ms": 9000, "_timestamp": 1563450009000}
""",
}


class Visit(NamedTuple):
    session_start_ts: str
    session_end_ts: str
    click_count: int
    session_length_ms: int


def text(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def visit(windowed: Windowed, count: int) -> Visit:
    window = windowed.window
    return Visit(text(window.start_ms), text(window.end_ms), count, window.end_ms - window.start_ms)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("clicks")
        .group_by_key()
        .windowed_by(SessionWindows.of("5m", grace="24h"))
        .count(store="clicks-per-visit")
        .map_values(visit, with_key=True)
        .to_stream()
        .to("ip-sessions")
    )
    return builder.build()
