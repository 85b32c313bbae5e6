"""Slips in a job with a declared schema, sessions and a join with a table, found by `plan` before anything is landed."""

from __future__ import annotations

from tests.bad_input.cases import Case, edited
from tests.bad_input.scene import Bench
from tests.refusals import containing

SCHEMA = "ride STRING, bike STRING, station STRING, meters DOUBLE, ended TIMESTAMP, sent TIMESTAMP"
FEED = f"""\
feed: rides
partitions: 4
landing: {{every: 1d}}
logs:
  rides:
    source: {{format: json, path: data/rides, schema: "{SCHEMA}"}}
    key: bike
    value: [ride, station, meters]
    timestamp: ended
    arrived_at: sent
  stations:
    source: {{format: csv, path: data/stations.csv, options: {{header: "true", inferSchema: "true"}}}}
    key: station
    value: [name, docks]
    timestamp: opened_at
    arrived_at: sent
"""
JOB = """\
job: busy_bikes
topology: rides_job:build_topology
feed: rides
outputs:
  trips: {table: bikes.trips}
  named: {table: bikes.named}
"""
MODULE = """\
from typing import NamedTuple

from rewindow import (
    Count,
    JoinWindows,
    SessionWindows,
    StreamsBuilder,
    Sum,
    Topology,
    until_window_closes,
)


class Named(NamedTuple):
    ride: str
    name: str


def build_topology() -> Topology:
    builder = StreamsBuilder()
    rides = builder.stream("rides")
    stations = builder.table("stations", store="stations")
    (
        rides.group_by_key()
        .windowed_by(SessionWindows.of("30m", grace="1h"))
        .aggregate({"rides": Count(), "meters": Sum("meters")}, store="trips")
        .suppress(until_window_closes())
        .to_stream()
        .to("trips")
    )
    (
        rides.select_key(lambda bike, ride: ride.station, key=str)
        .join(stations, lambda ride, station: Named(ride.ride, station.name), value=Named, name="located")
        .to("named")
    )
    return builder.build()
"""
RIDE = '{"ride": "r1", "bike": "b1", "station": "s1", "meters": 1200.5, "ended": "%s:00Z", "sent": "%s:30Z"}\n'
STATIONS = """\
station,name,docks,opened_at,sent
s1,Harbour,20,2026-10-01 00:00:00,2026-10-01 00:00:00
"""


def project(bench: Bench) -> None:
    """Write the job and its sources into a project."""
    bench.write("conf/feeds/rides.yaml", FEED)
    bench.write("conf/jobs/busy_bikes.yaml", JOB)
    bench.write("rides_job.py", MODULE)
    bench.write("data/rides/1.json", RIDE % ("2026-11-01T08:00", "2026-11-01T08:00"))
    bench.write("data/stations.csv", STATIONS)


def _code(name: str, old: str, new: str, code: str, /, **facts: object) -> Case:
    return Case(
        f"a newcomer to rides {name}", "plan busy_bikes", code, facts, edited("rides_job.py", old, new, project)
    )


def _feed(name: str, old: str, new: str, code: str, /, **facts: object) -> Case:
    given = edited("conf/feeds/rides.yaml", old, new, project)
    return Case(f"a newcomer to rides {name}", "plan busy_bikes", code, facts, given)


_AGGREGATE = '.aggregate({"rides": Count(), "meters": Sum("meters")}, store="trips")'
_JOINER = "lambda ride, station: Named(ride.ride, station.name)"
CASES = [
    _code("gives windows a duration", 'SessionWindows.of("30m", grace="1h")', '"30m"', "windows-invalid"),
    _code(
        "forgets of", 'SessionWindows.of("30m", grace="1h")', 'SessionWindows("30m", "1h")', "windows-made-without-of"
    ),
    _code(
        "folds sessions",
        _AGGREGATE,
        '.aggregate(lambda: 0, lambda k, v, a: a + 1, store="trips")',
        "session-states-not-mergeable",
    ),
    _code(
        "joins the wrong way round", _JOINER, "lambda station, ride: station.name", "unknown-attribute", field="name"
    ),
    _code(
        "gives a join with a table windows",
        "value=Named",
        'JoinWindows.of("1h", grace="0s")',
        "table-join-option-refused",
    ),
    _code("joins a topic's name", "join(stations", 'join("stations"', "join-input-invalid", other="'stations'"),
    _code("joins keys of other types", "ride.station, key=str", "ride.meters, key=float", "unequal-keys", right="text"),
    _code("forgets the name of a join", ', name="located"', "", "table-join-unnamed"),
    _feed(
        "misspells a type", "bike STRING", "bike STRIN", "schema-not-usable", reason=containing("STRIN: did you mean")
    ),
    _feed("forgets a type", "bike STRING", "bike", "schema-not-usable", reason=containing("no type for bike")),
    _feed("forgets backticks", "bike STRING", "bike.nr STRING", "schema-not-usable", reason=containing("backticks")),
    _feed("forgets the key's column", "bike STRING, ", "", "column-unknown", column="bike"),
    _feed("misspells the folder", "data/rides,", "data/ride,", "feed-never-landed", feed="rides"),
]
