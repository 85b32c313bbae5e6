"""Wrong keys and values in conf/: feeds, jobs, targets, and files that are not configuration at all."""

from __future__ import annotations

from tests.bad_input.cases import Case, edited
from tests.bad_input.scene import FEED, JOB, TARGET, Bench

_FEED, _JOB, _TARGET = "conf/feeds/activity.yaml", "conf/jobs/counts.yaml", "conf/targets/local.yaml"
_SOURCE = "{path: raw, format: parquet}"
_LAUGHS = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


def _feed(name: str, old: str, new: str, *says: str) -> Case:
    return Case(
        f"feed: {name}", "land activity", 78, ("conf/feeds/activity.yaml, line ", *says), edited(_FEED, old, new)
    )


def _job(name: str, old: str, new: str, *says: str) -> Case:
    return Case(f"job: {name}", "plan counts", 78, ("conf/jobs/counts.yaml", *says), edited(_JOB, old, new))


def _target(name: str, old: str, new: str, *says: str) -> Case:
    return Case(
        f"target: {name}", "plan counts", 78, ("conf/targets/local.yaml, line ", *says), edited(_TARGET, old, new)
    )


def _file(name: str, text: str | bytes, *says: str) -> Case:
    def given(bench: Bench) -> None:
        (bench.root / _FEED).write_bytes(text.encode() if isinstance(text, str) else text)

    return Case(f"file: {name}", "land activity", 78, ("conf/feeds/activity.yaml", *says), given)


CASES = [
    _feed("an unknown key", "partitions: 2", "partitions: 2\npartition: 3", "line 3: ", "did you mean `partitions`?"),
    _feed("no partitions", "partitions: 2", "partitions: 0", "line 2: partitions must be at least 1"),
    _feed("partitions in words", "partitions: 2", "partitions: two", "must be a whole number"),
    _feed("partitions are missing", "partitions: 2\n", "", "partitions is missing: add it"),
    _feed("far too many partitions", "partitions: 2", "partitions: 100000", "at most 4,096"),
    _feed("half a partition", "partitions: 2", "partitions: 2.5", "must be a whole number"),
    _feed("no logs", FEED.partition("logs:")[2], " {}\n", "logs must not be empty"),
    _feed("logs as a list", FEED.partition("logs:")[2], " [events]\n", "logs must be a block of keys"),
    _feed("another feed's name", "feed: activity", "feed: activities", "rename one of them"),
    _feed("an invalid name", "feed: activity", 'feed: "a/b"', "is not a valid name"),
    _feed("a template", "feed: activity", 'feed: "{{ params.feed }}"', "contains a template", "write the value itself"),
    _feed(
        "an unknown format",
        "format: parquet",
        "format: avro",
        "line 4, column 40: ",
        "must be 'csv', 'json', 'parquet' or 'delta'",
    ),
    _feed("a path without a format", _SOURCE, "{path: raw}", "path and format go together"),
    _feed("an empty source", _SOURCE, "{}", "a source has exactly one of table, path with format, or job"),
    _feed("two sources", _SOURCE, "{path: raw, format: csv, table: a.b}", "got table and path"),
    _feed("a source that is a string", _SOURCE, "raw", "source"),
    _feed("a path upwards", "path: raw", "path: ../raw", "below the project's root"),
    _feed("a path with a new line", "path: raw", r'path: "ra\nw"', "printable characters"),
    _feed("a path with a NUL", "path: raw", r'path: "ra\0w"', "printable characters"),
    _feed("a web address", "path: raw", "path: https://example.org/raw", "is not supported"),
    _feed("options of a table", _SOURCE, "{table: a.b, options: {x: 1}}", "options and schema apply to files"),
    _feed("a deep option", _SOURCE, "{path: raw, format: csv, options: {x: [1]}}", "must be a single value"),
    _feed("a table with a quote", _SOURCE, '{table: "a\'; DROP TABLE b"}', "is not a valid name"),
    _feed("no key", "key: user, ", "", "key is missing: add it"),
    _feed("a key that is a number", "key: user", "key: 7", "is not a list of columns"),
    _feed("an empty key", "key: user", "key: []", "is not a list of columns"),
    _feed("a duplicate key", "key: user", "key: [user, user]", "list each column once"),
    _feed("a key that is also a value", "key: user", "key: user, value: [user, x]", "remove it from value"),
    _feed("a column with a space", "key: user", "key: user id", "rename it with columns:"),
    _feed("a timestamp that is code", "timestamp: t", 'timestamp: "a:b()"', "is not a function"),
    _feed("an unknown policy", "got}", "got, invalid_timestamp: drop}", "must be 'fail', 'skip' or 'partition_time'"),
    _feed("a duration without a unit", "partitions: 2", "partitions: 2\nlag: 10", "has no unit: write it like 500ms"),
    _feed("a negative lag", "partitions: 2", "partitions: 2\nlag: -5s", "out of range"),
    _feed("an endless lag", "partitions: 2", "partitions: 2\nlag: 99999999999w", "out of range"),
    _feed("an invalid interval", "partitions: 2", "partitions: 2\nlanding: {every: 1d12h}", "is not an interval"),
    _feed("an interval of nothing", "partitions: 2", "partitions: 2\nlanding: {every: 0h}", "must be longer than 0"),
    _feed(
        "an end without intervals", "partitions: 2", "partitions: 2\nlanding: {watermark: interval_end}", "add every"
    ),
    _feed("no bound ahead", "partitions: 2", "partitions: 2\nlanding: {max_ahead: }", "write a duration or none"),
    _feed("a zone on Mars", "partitions: 2", "partitions: 2\nzone: Mars/Base", "use an IANA name"),
    _job("an unknown key", "feed: activity", "feed: activity\nparams: {a: 1}", "params is not a known key"),
    _job("no topology", "topology: bench_job:build_topology\n", "", "topology is missing: add it"),
    _job("a topology that is a file", "bench_job:build_topology", "jobs/bench_job.py", "write module:function"),
    _job("another job's name", "job: counts", "job: sums", "rename one of them"),
    _job("a table of rewindow's own", "alerts.totals", "rewindow.runs", "uses a name that rewindow reserves"),
    _job(
        "a table of rewindow's own in capitals", "alerts.totals", "REWINDOW.runs", "uses a name that rewindow reserves"
    ),
    _job("a table of state", "alerts.totals", "state.counts", "choose another name"),
    _job("a table of a branch", "alerts.totals", "alerts.totals__fix", "double underscore"),
    _job("a table upwards", "alerts.totals", "../alerts", "is not a valid name"),
    _job("an absolute table", "alerts.totals", "/alerts/totals", "is not a valid name"),
    _job("a table that drops one", "alerts.totals", '"x; DROP TABLE y"', "is not a valid name"),
    _job(
        "an unknown stream time", "feed: activity", "feed: activity\nsemantics: {stream_time: mean}", "'max' or 'min'"
    ),
    _job(
        "an unknown wall clock",
        "feed: activity",
        "feed: activity\nsemantics: {wall_clock: now}",
        "'stream_time' or 'run'",
    ),
    _job("dropped to nowhere", "feed: activity", "feed: activity\ndropped: log", "'count' or 'quarantine'"),
    _job("an invalid schedule", "feed: activity", "feed: activity\nschedule: hourly", "write five fields in quotes"),
    _job(
        "Spark settings",
        "feed: activity",
        "feed: activity\nspark: {memory: 1g}",
        "Spark's settings belong to the target",
    ),
    _job("an unknown feed", "feed: activity", "feed: activty", "line 3: ", "did you mean `activity`?"),
    _job("an output that nothing writes", "totals: {", "others: {", "line 4: the topology writes to 'totals'"),
    _job("no outputs", JOB.partition("outputs:")[2], " {}\n", "add it to `outputs:`"),
    _target("an unknown key", "target: local", "target: local\nwharehouse: x", "did you mean `warehouse`?"),
    _target("no warehouse", "warehouse: warehouse\n", "", "warehouse is missing: add it"),
    _target("a warehouse upwards", "warehouse: warehouse", "warehouse: ../w", "contains '..'"),
    _target("a warehouse on the web", "warehouse: warehouse", "warehouse: ftp://x/w", "is not supported"),
    _target("no cores", "target: local", "target: local\ncores: 0", "cores must be at least 1"),
    _target(
        "an unknown execution", "target: local", "target: local\nexecution: fast", "'auto', 'record' or 'vectorized'"
    ),
    _target("a number for a warehouse", "warehouse: warehouse", "warehouse: 5", "is not text"),
    _target("another target's name", "target: local", "target: prod", "rename one of them"),
    _file("a billion laughs", _LAUGHS, "aliases (*name) are not supported: write the value out"),
    _file("an object", "feed: !!python/object/apply:os.system [ls]\n", "the tag !!python/"),
    _file("a name of Python's", "feed: !!python/name:os.system\n", "the tag !!python/"),
    _file("very deep", "feed: " + "[" * 5000, "levels deep"),
    _file("very large", "# " + "x" * 1_000_001, "larger than 1,000,000 bytes"),
    _file("a list", "- feed: activity\n", "is not a mapping of keys to values"),
    _file("empty", "", "is empty"),
    _file("half a bracket", "feed: [activity\n", "line 2"),
    _file("a duplicate key", "feed: activity\n" + FEED, "line 2: duplicate key 'feed'"),
    _file("not UTF-8", b"\xff\xfe\x00f", "line 1: this is not UTF-8"),
    _file("a tab", "feed:\tactivity\n\tx: 1\n", "line 1, column 6: a tab"),
    _file("control characters", "feed: a\x01\n", "line 1, column 8: the control character 0x01"),
    _file("an invalid date", "feed: 2013-02-31\n", "line 1: feed: '2013-02-31' is not a valid name"),
    Case(
        "a job that is not UTF-8",
        "plan counts",
        78,
        "line 1: this is not UTF-8",
        lambda b: (b.root / _JOB).write_bytes(b"\xff") and None,
    ),
    Case(
        "a target of two documents",
        "plan counts",
        78,
        f"{_TARGET}, line 3: a second document",
        lambda b: b.write(_TARGET, f"{TARGET}---\n{TARGET}"),
    ),
]
