"""Appearances of actors, split by genre."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/splitting/kstreams/code/tutorial-steps/dev"
INPUT = {
    "acting-events": """
{"name": "Meryl Streep", "title": "The Iron Lady", "genre": "drama"}
{"name": "Will Smith", "title": "Men in Black", "genre": "comedy"}
{"name": "Matt Damon", "title": "The Martian", "genre": "drama"}
{"name": "Judy Garland", "title": "The Wizard of Oz", "genre": "fantasy"}
{"name": "Jennifer Aniston", "title": "Office Space", "genre": "comedy"}
{"name": "Bill Murray", "title": "Ghostbusters", "genre": "fantasy"}
{"name": "Christian Bale", "title": "The Dark Knight", "genre": "crime"}
{"name": "Laura Dern", "title": "Jurassic Park", "genre": "fantasy"}
{"name": "Keanu Reeves", "title": "The Matrix", "genre": "fantasy"}
{"name": "Russell Crowe", "title": "Gladiator", "genre": "drama"}
{"name": "Diane Keaton", "title": "The Godfather: Part II", "genre": "crime"}
""",
}
LOGS = {"acting-events": {"key": "name", "timestamp": "tests.public_cases.times:first"}}
EXPECTED = {
    "drama": """
{"name": "Meryl Streep", "title": "The Iron Lady", "genre": "drama"}
{"name": "Matt Damon", "title": "The Martian", "genre": "drama"}
{"name": "Russell Crowe", "title": "Gladiator", "genre": "drama"}
""",
    "fantasy": """
{"name": "Judy Garland", "title": "The Wizard of Oz", "genre": "fantasy"}
{"name": "Bill Murray", "title": "Ghostbusters", "genre": "fantasy"}
{"name": "Laura Dern", "title": "Jurassic Park", "genre": "fantasy"}
{"name": "Keanu Reeves", "title": "The Matrix", "genre": "fantasy"}
""",
    "other": """
{"name": "Will Smith", "title": "Men in Black", "genre": "comedy"}
{"name": "Jennifer Aniston", "title": "Office Space", "genre": "comedy"}
{"name": "Christian Bale", "title": "The Dark Knight", "genre": "crime"}
{"name": "Diane Keaton", "title": "The Godfather: Part II", "genre": "crime"}
""",
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("acting-events")
        .split()
        .branch(lambda _, event: event.genre == "drama", chain=lambda stream: stream.to("drama"))
        .branch(lambda _, event: event.genre == "fantasy", chain=lambda stream: stream.to("fantasy"))
        .default_branch(chain=lambda stream: stream.to("other"))
    )
    return builder.build()
