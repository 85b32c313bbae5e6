"""Slips in a job on another log: rides in JSON, stations in CSV, sessions, a processor and a join."""

from __future__ import annotations

from functools import partial

from tests.bad_input.cases import Case, edited
from tests.bad_input.scene import Bench

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
  silent: {table: bikes.silent}
  named: {table: bikes.named}
"""
MODULE = """\
from typing import NamedTuple

from rewindow import (
    Count,
    JoinWindows,
    Processor,
    Record,
    SessionWindows,
    StreamsBuilder,
    Sum,
    Topology,
    key_value_store,
    until_window_closes,
)


class Named(NamedTuple):
    ride: str
    name: str


class Last(Processor):
    def init(self, context):
        super().init(context)
        self.last = context.store("last-rides")

    def process(self, record):
        self.last.put(record.key, record.timestamp)
        self.context.forward(Record(record.key, record.timestamp))


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
    store = key_value_store("last-rides", key=str, value=int)
    rides.process(Last, name="last", stores=[store], key=str, value=int).to("silent")
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


def _edited(path: str, name: str, old: str, new: str, *says: str, code: int = 78) -> Case:
    return Case(f"a newcomer to rides {name}", "plan busy_bikes", code, says, edited(path, old, new, project))


def _called(command: str, code: int, *says: str) -> Case:
    return Case(f"a newcomer to rides calls {command}", command, code, says, project)


_code = partial(_edited, "rides_job.py")
_feed = partial(_edited, "conf/feeds/rides.yaml")
_job = partial(_edited, "conf/jobs/busy_bikes.yaml")
_SESSIONS, _GROUP = 'SessionWindows.of("30m", grace="1h")', "rides.group_by_key()"
_AGGREGATE = '.aggregate({"rides": Count(), "meters": Sum("meters")}, store="trips")'
_JOINER = "lambda ride, station: Named(ride.ride, station.name)"
CASES = [
    _code("calls the class of windows", _SESSIONS, 'SessionWindows("30m", "1h")', "use SessionWindows.of("),
    _code("writes 30 minutes", '"30m"', '"30 minutes"', "'30 minutes' is not a duration", "30m"),
    _code("gives a negative grace", 'grace="1h"', 'grace="-1h"', "the grace must be 0 or more"),
    _code("gives a duration for windows", _SESSIONS, '"30m"', "give TimeWindows, SlidingWindows, SessionWindows"),
    _code("counts a stream", _GROUP, 'rides.count(store="x")', "no attribute 'count'", "rides_job.py"),
    _code("aggregates by a name", "Count()", '"count"', "give an aggregate, as in Count()"),
    _code("folds sessions", _AGGREGATE, '.aggregate(lambda: 0, lambda k, v, a: a + 1, store="trips")', "a merger"),
    _code("suppresses nothing", "until_window_closes())", ")", "'suppressed'", "rides_job.py"),
    _code("forgets a call", "until_window_closes())", "until_window_closes)", "suppress(until_window_closes)"),
    _code("groups by a name", _GROUP, 'rides.group_by("station")', "group_by('station'): give it a function"),
    _code("groups by one argument", _GROUP, "rides.group_by(lambda ride: ride.station)", "group_by: the lambda"),
    _code("filters by a text", _GROUP, 'rides.filter("meters > 10").group_by_key()', "give it a function"),
    _code("filters as in Python", _GROUP, "rides.filter(ride.meters > 10).group_by_key()", "name 'ride'"),
    _code("filters as in pandas", _GROUP, "rides[rides.meters > 10].group_by_key()", "'meters'", "rides_job.py"),
    _code("gives where a lambda", _GROUP, "rides.where(lambda k, v: True).group_by_key()", "For a function use filter"),
    _code("gives select a list", _GROUP, 'rides.select(["ride"]).group_by_key()', "name the fields in one text"),
    _code("selects an unknown field", _GROUP, 'rides.select("metres").group_by_key()', "metres"),
    _code("joins with one argument", _JOINER, "lambda ride: ride", "is called with (left, right)"),
    _code("joins the wrong way round", _JOINER, "lambda station, ride: station.name", "rides_job.py", "'name'"),
    _code("misspells a field of the table", "station.name)", "station.nme)", "did you mean 'name'?"),
    _code("gives a join with a table windows", "value=Named", 'JoinWindows.of("1h", grace="0s")', "neither windows="),
    _code("joins a topic's name", "join(stations", 'join("stations"', "give it a KStream or a KTable"),
    _code("joins keys of other types", "ride.station, key=str", "ride.meters, key=float", "a number and text"),
    _code("forgets the name of a join", ', name="located"', "", "Give it a name, name=..."),
    _code(
        "forgets the store of a table", ', store="stations"', "", "missing 1 required keyword-only argument: 'store'"
    ),
    _code(
        "misspells a field of the record", "record.timestamp)\n        self", "record.time)\n        self", "timestamp"
    ),
    _code("writes to two outputs in a row", '.to("named")', '.to("named").to("silent")', "'NoneType'", "rides_job.py"),
    _code("writes to a table", '.to("named")', '.to("bikes.named")', "add it to `outputs:`"),
    _code("forgets an output", '\n        .to("named")', "", "does not write it (it writes trips, silent)"),
    _code("gives the function an argument", "def build_topology()", "def build_topology(spark)", "'spark'"),
    _code("returns the builder", "return builder.build()", "return builder", "return builder.build()"),
    _code("imports what is not there", "    Topology,\n", "    Topolgy,\n", "Topolgy", "rides_job.py:3"),
    _code("imports a package that is not installed", "import NamedTuple", "import NamedTuple\nimport nump", "'nump'"),
    _code("imports relatively", "from typing", "from .names import X\nfrom typing", "no known parent package"),
    _code("reads with Spark", "\n\nclass Named", "\n\nROWS = spark.read\n\n\nclass Named", "'spark' is not defined"),
    _code("mixes tabs and spaces", "        self.last = c", "\tself.last = c", "rides_job.py:", "Fix that line"),
    _feed("misspells a type", "bike STRING", "bike STRIN", "bike the unknown type STRIN", "did you mean STRING?"),
    _feed("forgets a type", "bike STRING", "bike", "`schema` has no type for bike"),
    _feed("forgets backticks", "bike STRING", "bike.nr STRING", "backticks"),
    _feed("forgets the key's column", "bike STRING, ", "", "no column 'bike'", "It has ride, station"),
    _feed("lists the schema", f'"{SCHEMA}"', "[ride, bike]", "logs.rides.source.schema"),
    _feed("writes jsonl", "format: json", "format: jsonl", "'csv', 'json', 'parquet' or 'delta'"),
    _feed("forgets the format", "format: json, ", "", "path and format go together"),
    _feed("misspells the folder", "data/rides,", "data/ride,", "data/ride has no files", "fix `path:`", code=66),
    _feed("writes partitions as a word", "partitions: 4", "partitions: four", "partitions"),
    _feed("gives no partitions", "partitions: 4", "partitions: 0", "partitions"),
    _feed("gives a log partitions", "    key: bike\n", "    key: bike\n    partitions: 8\n", "logs.rides.partitions"),
    _feed("lands every 0 days", "every: 1d", "every: 0d", "'0d' is not an interval"),
    _feed("gives landing a duration", "{every: 1d}", "1d", "landing must be a block of keys"),
    _feed("names a key twice", "key: bike", "key: [bike, ride]", "ride is in both key and value"),
    _feed("names a nested value", "[ride, station,", "[ride, station.name,", "rename it with columns"),
    _job("names a file", "rides_job:build_topology", "rides_job.py", "write module:function"),
    _job("names a path", "rides_job:build_topology", "./rides_job:build_topology", "write module:function"),
    _job("writes dots", "rides_job:build_topology", "rides_job.build_topology", "write module:function"),
    _job("misspells the function", ":build_topology", ":build", "has no function 'build'"),
    _job("writes one table twice", "bikes.silent", "bikes.trips", "give each output its own table"),
    _job("misspells the feed", "feed: rides", "feed: ride", "there is no feed 'ride': did you mean `rides`?"),
    _job("renames the job", "job: busy_bikes", "job: busybikes", "must equal the file's name"),
    _job("writes output", "outputs:\n", "output:\n", "did you mean `outputs`?"),
    _called("plan busy_bike", 78, "no conf/jobs/busy_bike.yaml", "busy_bikes"),
    _called("plan busy_bikes --until 2026-13-01", 2, "'2026-13-01' is not a valid time"),
    _called("diff busy_bikes main", 2, "'BRANCH_B'"),
    _called("state show busy_bikes last-rides", 2, "has no runs on branch 'main' yet", "`rewindow run busy_bikes`"),
    _called("rewind busy_bikes --to 1", 2, "run '1' does not exist"),
    _called("verify busy_bikes", 2, "has no runs on branch 'main'"),
    _called("run busy_bikes --target prod", 78, "no conf/targets/prod.yaml", "available: local"),
    _called("run busy_bikes --accept-change", 2, "--accept-changes"),
    _called("runn busy_bikes", 2, "Did you mean 'run'?"),
    _called("branch drop busy_bikes main", 2, "'main' is the published branch and cannot be dropped"),
]
