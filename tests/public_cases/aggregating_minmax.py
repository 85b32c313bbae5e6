"""The smallest and the largest sales of a film in each year."""

from __future__ import annotations

from rewindow import Max, Min, StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/aggregating-minmax/kstreams/code/tutorial-steps/dev"
INPUT = {
    "sales": """
{"title": "Avengers: Endgame", "release_year": 2019, "total_sales": 856980506}
{"title": "Captain Marvel", "release_year": 2019, "total_sales": 426829839}
{"title": "Toy Story 4", "release_year": 2019, "total_sales": 401486230}
{"title": "The Lion King", "release_year": 2019, "total_sales": 385082142}
{"title": "Black Panther", "release_year": 2018, "total_sales": 700059566}
{"title": "Avengers: Infinity War", "release_year": 2018, "total_sales": 678815482}
{"title": "Deadpool 2", "release_year": 2018, "total_sales": 324512774}
{"title": "Beauty and the Beast", "release_year": 2017, "total_sales": 517218368}
{"title": "Wonder Woman", "release_year": 2017, "total_sales": 412563408}
{"title": "Star Wars Ep. VIII: The Last Jedi", "release_year": 2017, "total_sales": 517218368}
"""
}
LOGS = {"sales": {"key": "release_year", "timestamp": "tests.public_cases.times:first"}}
EXPECTED = {
    "figures": """
{"release_year": 2019, "min_total_sales": 856980506, "max_total_sales": 856980506}
{"release_year": 2019, "min_total_sales": 426829839, "max_total_sales": 856980506}
{"release_year": 2019, "min_total_sales": 401486230, "max_total_sales": 856980506}
{"release_year": 2019, "min_total_sales": 385082142, "max_total_sales": 856980506}
{"release_year": 2018, "min_total_sales": 700059566, "max_total_sales": 700059566}
{"release_year": 2018, "min_total_sales": 678815482, "max_total_sales": 700059566}
{"release_year": 2018, "min_total_sales": 324512774, "max_total_sales": 700059566}
{"release_year": 2017, "min_total_sales": 517218368, "max_total_sales": 517218368}
{"release_year": 2017, "min_total_sales": 412563408, "max_total_sales": 517218368}
{"release_year": 2017, "min_total_sales": 412563408, "max_total_sales": 517218368}
"""
}


def build_topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("sales")
        .group_by_key()
        .aggregate({"min_total_sales": Min("total_sales"), "max_total_sales": Max("total_sales")}, store="extremes")
        .to_stream()
        .to("figures")
    )
    return builder.build()
