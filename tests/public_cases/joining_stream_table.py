"""Ratings with the films as they are in a table."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/joining-stream-table/kstreams/code/tutorial-steps/dev"
INPUT = {
    "movies": """
{"id": 294, "title": "Die Hard", "release_year": 1988}
{"id": 354, "title": "Tree of Life", "release_year": 2011}
{"id": 782, "title": "A Walk in the Clouds", "release_year": 1995}
{"id": 128, "title": "The Big Lebowski", "release_year": 1998}
{"id": 780, "title": "Super Mario Bros.", "release_year": 1993}
""",
    "ratings": """
{"id": 294, "rating": 8.2}
{"id": 294, "rating": 8.5}
{"id": 354, "rating": 9.9}
{"id": 354, "rating": 9.7}
{"id": 782, "rating": 7.8}
{"id": 782, "rating": 7.7}
{"id": 128, "rating": 8.7}
{"id": 128, "rating": 8.4}
{"id": 780, "rating": 2.1}
""",
}
LOGS = {
    "movies": {"key": "id", "timestamp": "tests.public_cases.times:first"},
    "ratings": {"key": "id", "timestamp": "tests.public_cases.times:second"},
}
EXPECTED = {
    "rated-movies": """
{"id": 294, "title": "Die Hard", "release_year": 1988, "rating": 8.2}
{"id": 294, "title": "Die Hard", "release_year": 1988, "rating": 8.5}
{"id": 354, "title": "Tree of Life", "release_year": 2011, "rating": 9.9}
{"id": 354, "title": "Tree of Life", "release_year": 2011, "rating": 9.7}
{"id": 782, "title": "A Walk in the Clouds", "release_year": 1995, "rating": 7.8}
{"id": 782, "title": "A Walk in the Clouds", "release_year": 1995, "rating": 7.7}
{"id": 128, "title": "The Big Lebowski", "release_year": 1998, "rating": 8.7}
{"id": 128, "title": "The Big Lebowski", "release_year": 1998, "rating": 8.4}
{"id": 780, "title": "Super Mario Bros.", "release_year": 1993, "rating": 2.1}
""",
}


class RatedMovie(NamedTuple):
    title: str
    release_year: int
    rating: float


def rated(rating: Any, movie: Any) -> RatedMovie:
    return RatedMovie(movie.title, movie.release_year, rating.rating)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    movies = builder.table("movies", store="movies")
    builder.stream("ratings").join(movies, rated).to("rated-movies")
    return builder.build()
