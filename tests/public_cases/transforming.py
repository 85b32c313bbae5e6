"""The year of a film, out of its title."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/transforming/kstreams/code/tutorial-steps/dev"
INPUT = {
    "raw-movies": """
{"id": 294, "title": "Die Hard::1988", "genre": "action"}
{"id": 354, "title": "Tree of Life::2011", "genre": "drama"}
{"id": 782, "title": "A Walk in the Clouds::1995", "genre": "romance"}
{"id": 128, "title": "The Big Lebowski::1998", "genre": "comedy"}
""",
}
LOGS = {
    "raw-movies": {"key": "id", "timestamp": "tests.public_cases.times:first"},
}
EXPECTED = {
    "movies": """
{"id": 294, "title": "Die Hard", "release_year": 1988, "genre": "action"}
{"id": 354, "title": "Tree of Life", "release_year": 2011, "genre": "drama"}
{"id": 782, "title": "A Walk in the Clouds", "release_year": 1995, "genre": "romance"}
{"id": 128, "title": "The Big Lebowski", "release_year": 1998, "genre": "comedy"}
""",
}


class Movie(NamedTuple):
    title: str
    release_year: int
    genre: str


def parsed(raw: Any) -> Movie:
    title, year = raw.title.split("::")
    return Movie(title, int(year), raw.genre)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("raw-movies").map_values(parsed).to("movies")
    return builder.build()
