"""Cities without keys, by their ids."""

from __future__ import annotations

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/connect-add-key-to-source/kstreams/code/tutorial-steps/dev"
INPUT = {
    "jdbc_source_cities": """
{"key": null, "city_id": 1, "name": "Raleigh", "state": "NC"}
{"key": null, "city_id": 2, "name": "Mountain View", "state": "CA"}
{"key": null, "city_id": 3, "name": "Knoxville", "state": "TN"}
{"key": null, "city_id": 4, "name": "Houston", "state": "TX"}
{"key": null, "city_id": 5, "name": "Olympia", "state": "WA"}
{"key": null, "city_id": 6, "name": "Bismarck", "state": "ND"}
""",
}
LOGS = {
    "jdbc_source_cities": {"key": "key", "timestamp": "tests.public_cases.times:first"},
}
EXPECTED = {
    "cities_keyed": """
{"key": 1, "city_id": 1, "name": "Raleigh", "state": "NC"}
{"key": 2, "city_id": 2, "name": "Mountain View", "state": "CA"}
{"key": 3, "city_id": 3, "name": "Knoxville", "state": "TN"}
{"key": 4, "city_id": 4, "name": "Houston", "state": "TX"}
{"key": 5, "city_id": 5, "name": "Olympia", "state": "WA"}
{"key": 6, "city_id": 6, "name": "Bismarck", "state": "ND"}
""",
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    cities = builder.stream("jdbc_source_cities").select_key(lambda _, city: city.city_id, key=int)
    cities.repartition(name="by-id").to("cities_keyed")
    return builder.build()
