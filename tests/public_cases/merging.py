"""Songs of two topics in one."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/merging/kstreams/code/tutorial-steps/dev"
INPUT = {
    "rock-songs": """
{"artist": "Metallica", "title": "Fade to Black"}
{"artist": "Smashing Pumpkins", "title": "Today"}
{"artist": "Pink Floyd", "title": "Another Brick in the Wall"}
{"artist": "Van Halen", "title": "Jump"}
{"artist": "Led Zeppelin", "title": "Kashmir"}
""",
    "classical-songs": """
{"artist": "Wolfgang Amadeus Mozart", "title": "The Magic Flute"}
{"artist": "Johann Pachelbel", "title": "Canon"}
{"artist": "Ludwig van Beethoven", "title": "Symphony No. 5"}
{"artist": "Edward Elgar", "title": "Pomp and Circumstance"}
""",
}
LOGS = {
    "rock-songs": {"key": "artist", "timestamp": "tests.public_cases.times:first"},
    "classical-songs": {"key": "artist", "timestamp": "tests.public_cases.times:second"},
}
EXPECTED = {
    "all-songs": """
{"artist": "Metallica", "title": "Fade to Black"}
{"artist": "Smashing Pumpkins", "title": "Today"}
{"artist": "Pink Floyd", "title": "Another Brick in the Wall"}
{"artist": "Van Halen", "title": "Jump"}
{"artist": "Led Zeppelin", "title": "Kashmir"}
{"artist": "Wolfgang Amadeus Mozart", "title": "The Magic Flute"}
{"artist": "Johann Pachelbel", "title": "Canon"}
{"artist": "Ludwig van Beethoven", "title": "Symphony No. 5"}
{"artist": "Edward Elgar", "title": "Pomp and Circumstance"}
""",
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("rock-songs").merge(builder.stream("classical-songs")).to("all-songs")
    return builder.build()
