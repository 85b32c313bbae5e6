"""Ratings by film instead of by number."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/rekeying/ksql/code"
INPUT = {
    "ratings": """
{"old": 1, "id": 294, "rating": 8.2}
{"old": 2, "id": 294, "rating": 8.5}
{"old": 3, "id": 354, "rating": 9.9}
{"old": 4, "id": 354, "rating": 9.7}
{"old": 5, "id": 782, "rating": 7.8}
{"old": 6, "id": 782, "rating": 7.7}
{"old": 7, "id": 128, "rating": 8.7}
{"old": 8, "id": 128, "rating": 8.4}
{"old": 9, "id": 780, "rating": 2.1}
""",
}
LOGS = {
    "ratings": {"key": "old", "timestamp": "tests.public_cases.times:first"},
}
EXPECTED = {
    "ratings_keyed_by_id": """
{"id": 294, "RATING": 8.2, "OLD": 1}
{"id": 294, "RATING": 8.5, "OLD": 2}
{"id": 354, "RATING": 9.9, "OLD": 3}
{"id": 354, "RATING": 9.7, "OLD": 4}
{"id": 782, "RATING": 7.8, "OLD": 5}
{"id": 782, "RATING": 7.7, "OLD": 6}
{"id": 128, "RATING": 8.7, "OLD": 7}
{"id": 128, "RATING": 8.4, "OLD": 8}
{"id": 780, "RATING": 2.1, "OLD": 9}
""",
}


class Film(NamedTuple):
    id: int


class Rating(NamedTuple):
    OLD: int
    RATING: float


def by_film(old: int, row: Any) -> tuple[Film, Rating]:
    return Film(row.id), Rating(old, row.rating)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("ratings").map(by_film, key=Film, value=Rating).repartition(name="by-film").to("ratings_keyed_by_id")
    return builder.build()
