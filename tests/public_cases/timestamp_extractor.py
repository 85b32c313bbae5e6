"""Ratings in windows of ten minutes, whose times a function reads from texts."""

from __future__ import annotations

from datetime import datetime

from rewindow import Record, StreamsBuilder, TimeWindows, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/tumbling-windows/kstreams/code/src/test/java/io/confluent/developer/TumblingWindowTest.java"
INPUT = {
    "ratings": """
{"title": "Super Mario Bros.", "release_year": 1993, "rating": 3.5, "timestamp": "2019-04-25T11:15:00-0000"}
{"title": "Super Mario Bros.", "release_year": 1993, "rating": 2.0, "timestamp": "2019-04-25T11:40:00-0000"}
{"title": "A Walk in the Clouds", "release_year": 1998, "rating": 3.6, "timestamp": "2019-04-25T13:00:00-0000"}
{"title": "A Walk in the Clouds", "release_year": 1998, "rating": 7.1, "timestamp": "2019-04-25T13:01:00-0000"}
{"title": "Die Hard", "release_year": 1988, "rating": 8.2, "timestamp": "2019-04-25T18:00:00-0000"}
{"title": "Die Hard", "release_year": 1988, "rating": 7.6, "timestamp": "2019-04-25T18:05:00-0000"}
{"title": "The Big Lebowski", "release_year": 1998, "rating": 8.6, "timestamp": "2019-04-25T19:30:00-0000"}
{"title": "The Big Lebowski", "release_year": 1998, "rating": 7.0, "timestamp": "2019-04-25T19:35:00-0000"}
{"title": "Tree of Life", "release_year": 2011, "rating": 4.9, "timestamp": "2019-04-25T21:00:00-0000"}
{"title": "Tree of Life", "release_year": 2011, "rating": 9.9, "timestamp": "2019-04-25T21:11:00-0000"}
""",
}
LOGS = {
    "ratings": {
        "key": "title",
        "columns": {"rated": "timestamp"},
        "timestamp": "tests.public_cases.timestamp_extractor:rated_ms",
    }
}
EXPECTED = {
    "counts": """
{"key": "Super Mario Bros.", "value": "1"}
{"key": "Super Mario Bros.", "value": "1"}
{"key": "A Walk in the Clouds", "value": "1"}
{"key": "A Walk in the Clouds", "value": "2"}
{"key": "Die Hard", "value": "1"}
{"key": "Die Hard", "value": "2"}
{"key": "The Big Lebowski", "value": "1"}
{"key": "The Big Lebowski", "value": "2"}
{"key": "Tree of Life", "value": "1"}
{"key": "Tree of Life", "value": "1"}
""",
}


def rated_ms(record: Record, partition_time: int) -> int:
    return round(datetime.strptime(record.value.rated, "%Y-%m-%dT%H:%M:%S%z").timestamp() * 1000)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    windows = builder.stream("ratings").group_by_key().windowed_by(TimeWindows.of("10m", grace="1440m"))
    counts = windows.count(store="ratings-per-window").to_stream()
    counts.map(lambda window, count: (window.key, str(count)), key=str, value=str).to("counts")
    return builder.build()
