"""Ratings with the films that came out within ten minutes of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import JoinWindows, StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/tutorials/tree/0cadb2292636b7e71323b9b39b49f86509196f77/joining-stream-stream/kstreams"
INPUT = {
    "movie-input": """
{"id": "294", "title": "Die Hard", "releaseYear": 1988}
{"id": "354", "title": "Tree of Life", "releaseYear": 2011}
{"id": "782", "title": "A Walk in the Clouds", "releaseYear": 1998}
{"id": "128", "title": "The Big Lebowski", "releaseYear": 1998}
{"id": "780", "title": "Super Mario Bros.", "releaseYear": 1993}
""",
    "ratings-input": """
{"id": "294", "rating": 8.2}
{"id": "294", "rating": 8.5}
{"id": "354", "rating": 9.9}
{"id": "354", "rating": 9.7}
{"id": "782", "rating": 7.8}
{"id": "782", "rating": 7.7}
{"id": "128", "rating": 8.7}
{"id": "128", "rating": 8.4}
{"id": "780", "rating": 2.1}
""",
}
LOGS = {
    "movie-input": {"key": "id", "timestamp": "tests.public_cases.times:first"},
    "ratings-input": {"key": "id", "timestamp": "tests.public_cases.times:second"},
}
EXPECTED = {
    "rated-movies-output": """
{"id": "294", "title": "Die Hard", "releaseYear": 1988, "rating": 8.2}
{"id": "294", "title": "Die Hard", "releaseYear": 1988, "rating": 8.5}
{"id": "354", "title": "Tree of Life", "releaseYear": 2011, "rating": 9.9}
{"id": "354", "title": "Tree of Life", "releaseYear": 2011, "rating": 9.7}
{"id": "782", "title": "A Walk in the Clouds", "releaseYear": 1998, "rating": 7.8}
{"id": "782", "title": "A Walk in the Clouds", "releaseYear": 1998, "rating": 7.7}
{"id": "128", "title": "The Big Lebowski", "releaseYear": 1998, "rating": 8.7}
{"id": "128", "title": "The Big Lebowski", "releaseYear": 1998, "rating": 8.4}
{"id": "780", "title": "Super Mario Bros.", "releaseYear": 1993, "rating": 2.1}
""",
}


class RatedMovie(NamedTuple):
    title: str
    releaseYear: int
    rating: float


def rated(rating: Any, movie: Any) -> RatedMovie:
    return RatedMovie(movie.title, movie.releaseYear, rating.rating)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    movies, ratings = builder.stream("movie-input"), builder.stream("ratings-input")
    ratings.join(movies, rated, JoinWindows.of("10m", grace="0s"), name="rated").to("rated-movies-output")
    return builder.build()
