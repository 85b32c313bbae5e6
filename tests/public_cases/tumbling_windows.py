"""Ratings of each film in windows of ten minutes; some films are rated hours late."""

from __future__ import annotations

from rewindow import StreamsBuilder, TimeWindows, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/tumbling-windows/kstreams/code/tutorial-steps/dev"
INPUT = {
    "ratings": """
{"title": "Die Hard", "release_year": 1998, "rating": 8.2, "timestamp": "2019-04-25T18:00:00-0700"}
{"title": "Die Hard", "release_year": 1998, "rating": 4.5, "timestamp": "2019-04-25T18:03:00-0700"}
{"title": "Die Hard", "release_year": 1998, "rating": 5.1, "timestamp": "2019-04-25T18:04:00-0700"}
{"title": "Die Hard", "release_year": 1998, "rating": 2.0, "timestamp": "2019-04-25T18:07:00-0700"}
{"title": "Die Hard", "release_year": 1998, "rating": 8.3, "timestamp": "2019-04-25T18:32:00-0700"}
{"title": "Die Hard", "release_year": 1998, "rating": 3.4, "timestamp": "2019-04-25T18:36:00-0700"}
{"title": "Die Hard", "release_year": 1998, "rating": 4.2, "timestamp": "2019-04-25T18:43:00-0700"}
{"title": "Die Hard", "release_year": 1998, "rating": 7.6, "timestamp": "2019-04-25T18:44:00-0700"}
{"title": "Tree of Life", "release_year": 2011, "rating": 4.9, "timestamp": "2019-04-25T20:01:00-0700"}
{"title": "Tree of Life", "release_year": 2011, "rating": 5.6, "timestamp": "2019-04-25T20:02:00-0700"}
{"title": "Tree of Life", "release_year": 2011, "rating": 9.0, "timestamp": "2019-04-25T20:03:00-0700"}
{"title": "Tree of Life", "release_year": 2011, "rating": 6.5, "timestamp": "2019-04-25T20:12:00-0700"}
{"title": "Tree of Life", "release_year": 2011, "rating": 2.1, "timestamp": "2019-04-25T20:13:00-0700"}
{"title": "A Walk in the Clouds", "release_year": 1995, "rating": 3.6, "timestamp": "2019-04-25T22:20:00-0700"}
{"title": "A Walk in the Clouds", "release_year": 1995, "rating": 6.0, "timestamp": "2019-04-25T22:21:00-0700"}
{"title": "A Walk in the Clouds", "release_year": 1995, "rating": 7.0, "timestamp": "2019-04-25T22:22:00-0700"}
{"title": "A Walk in the Clouds", "release_year": 1995, "rating": 4.6, "timestamp": "2019-04-25T22:23:00-0700"}
{"title": "A Walk in the Clouds", "release_year": 1995, "rating": 7.1, "timestamp": "2019-04-25T22:24:00-0700"}
{"title": "The Big Lebowski", "release_year": 1998, "rating": 9.9, "timestamp": "2019-04-25T21:15:00-0700"}
{"title": "The Big Lebowski", "release_year": 1998, "rating": 8.6, "timestamp": "2019-04-25T21:16:00-0700"}
{"title": "The Big Lebowski", "release_year": 1998, "rating": 4.2, "timestamp": "2019-04-25T21:17:00-0700"}
{"title": "The Big Lebowski", "release_year": 1998, "rating": 7.0, "timestamp": "2019-04-25T21:18:00-0700"}
{"title": "The Big Lebowski", "release_year": 1998, "rating": 9.5, "timestamp": "2019-04-25T21:19:00-0700"}
{"title": "The Big Lebowski", "release_year": 1998, "rating": 3.2, "timestamp": "2019-04-25T21:20:00-0700"}
{"title": "Super Mario Bros.", "release_year": 1993, "rating": 3.5, "timestamp": "2019-04-25T13:00:00-0700"}
{"title": "Super Mario Bros.", "release_year": 1993, "rating": 4.0, "timestamp": "2019-04-25T13:07:00-0700"}
{"title": "Super Mario Bros.", "release_year": 1993, "rating": 5.1, "timestamp": "2019-04-25T13:30:00-0700"}
{"title": "Super Mario Bros.", "release_year": 1993, "rating": 2.0, "timestamp": "2019-04-25T13:34:00-0700"}
""",
}
LOGS = {
    "ratings": {"key": "title", "timestamp": "timestamp"},
}
EXPECTED = {
    "rating-counts": """
{"key": "Die Hard", "value": "1"}
{"key": "Die Hard", "value": "2"}
{"key": "Die Hard", "value": "3"}
{"key": "Die Hard", "value": "4"}
{"key": "Die Hard", "value": "1"}
{"key": "Die Hard", "value": "2"}
{"key": "Die Hard", "value": "1"}
{"key": "Die Hard", "value": "2"}
{"key": "Tree of Life", "value": "1"}
{"key": "Tree of Life", "value": "2"}
{"key": "Tree of Life", "value": "3"}
{"key": "Tree of Life", "value": "1"}
{"key": "Tree of Life", "value": "2"}
{"key": "A Walk in the Clouds", "value": "1"}
{"key": "A Walk in the Clouds", "value": "2"}
{"key": "A Walk in the Clouds", "value": "3"}
{"key": "A Walk in the Clouds", "value": "4"}
{"key": "A Walk in the Clouds", "value": "5"}
{"key": "The Big Lebowski", "value": "1"}
{"key": "The Big Lebowski", "value": "2"}
{"key": "The Big Lebowski", "value": "3"}
{"key": "The Big Lebowski", "value": "4"}
{"key": "The Big Lebowski", "value": "5"}
{"key": "The Big Lebowski", "value": "1"}
{"key": "Super Mario Bros.", "value": "1"}
{"key": "Super Mario Bros.", "value": "2"}
{"key": "Super Mario Bros.", "value": "1"}
{"key": "Super Mario Bros.", "value": "2"}
""",
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("ratings")
        .group_by_key()
        .windowed_by(TimeWindows.of("10m", grace="1440m"))
        .count(store="ratings-per-window")
        .to_stream()
        .map(lambda windowed, count: (windowed.key, str(count)), key=str, value=str)
        .to("rating-counts")
    )
    return builder.build()
