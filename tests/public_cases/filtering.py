"""Books of one author."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/filtering/kstreams/code/tutorial-steps/dev"
INPUT = {
    "publications": """
{"name": "George R. R. Martin", "title": "A Song of Ice and Fire"}
{"name": "C.S. Lewis", "title": "The Silver Chair"}
{"name": "C.S. Lewis", "title": "Perelandra"}
{"name": "George R. R. Martin", "title": "Fire & Blood"}
{"name": "J. R. R. Tolkien", "title": "The Hobbit"}
{"name": "J. R. R. Tolkien", "title": "The Lord of the Rings"}
{"name": "George R. R. Martin", "title": "A Dream of Spring"}
{"name": "J. R. R. Tolkien", "title": "The Fellowship of the Ring"}
{"name": "George R. R. Martin", "title": "The Ice Dragon"}
""",
}
LOGS = {
    "publications": {"key": "name", "timestamp": "tests.public_cases.times:first"},
}
EXPECTED = {
    "filtered-publications": """
{"name": "George R. R. Martin", "title": "A Song of Ice and Fire"}
{"name": "George R. R. Martin", "title": "Fire & Blood"}
{"name": "George R. R. Martin", "title": "A Dream of Spring"}
{"name": "George R. R. Martin", "title": "The Ice Dragon"}
""",
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("publications").where("key = 'George R. R. Martin'").to("filtered-publications")
    return builder.build()
