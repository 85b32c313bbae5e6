"""Films with their lead actors."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/joining-table-table/ksql/code"
INPUT = {
    "movies": """
{"TITLE": "Aliens", "ID": 48, "RELEASE_YEAR": 1986}
{"TITLE": "Die Hard", "ID": 294, "RELEASE_YEAR": 1998}
{"TITLE": "The Big Lebowski", "ID": 128, "RELEASE_YEAR": 1998}
{"TITLE": "The Godfather", "ID": 128, "RELEASE_YEAR": 1998}
""",
    "lead_actors": """
{"TITLE": "Aliens", "ACTOR_NAME": "Sigourney Weaver"}
{"TITLE": "Die Hard", "ACTOR_NAME": "Bruce Willis"}
{"TITLE": "The Big Lebowski", "ACTOR_NAME": "Jeff Bridges"}
{"TITLE": "The Godfather", "ACTOR_NAME": "Al Pacino"}
""",
}
LOGS = {
    "movies": {"key": "TITLE", "timestamp": "tests.public_cases.times:first"},
    "lead_actors": {"key": "TITLE", "timestamp": "tests.public_cases.times:second"},
}
EXPECTED = {
    "MOVIES_ENRICHED": """
{"TITLE": "Aliens", "ID": 48, "RELEASE_YEAR": 1986, "ACTOR_NAME": "Sigourney Weaver"}
{"TITLE": "Die Hard", "ID": 294, "RELEASE_YEAR": 1998, "ACTOR_NAME": "Bruce Willis"}
{"TITLE": "The Big Lebowski", "ID": 128, "RELEASE_YEAR": 1998, "ACTOR_NAME": "Jeff Bridges"}
{"TITLE": "The Godfather", "ID": 128, "RELEASE_YEAR": 1998, "ACTOR_NAME": "Al Pacino"}
""",
}


class Film(NamedTuple):
    ID: int
    RELEASE_YEAR: int
    ACTOR_NAME: str


def film(movie: Any, actor: Any) -> Film:
    return Film(movie.ID, movie.RELEASE_YEAR, actor.ACTOR_NAME)


def build_topology() -> Topology:
    builder = StreamsBuilder()
    movies, actors = builder.table("movies", store="movie-rows"), builder.table("lead_actors", store="actor-rows")
    movies.join(actors, film).to_stream().to("MOVIES_ENRICHED")
    return builder.build()
