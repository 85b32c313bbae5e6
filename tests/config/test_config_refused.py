"""Invalid configuration is refused with file, key and fix, all mistakes at once, and without revealing secrets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from rewindow.config.load import load_feed, load_job, load_jobs
from rewindow.errors import ConfigError
from tests.config.written import FEED, LOW_ACTIVITY, feed, feed_with, job, log_with, write
from tests.refusals import containing, refused

REFUSED_FEEDS = {
    "unknown key": (
        {"partition": 8},
        "partition is not a known key: did you mean `partitions`? Known keys: feed, partitions,",
    ),
    "no partitions": ({"partitions": 0}, "line 8: partitions must be at least 1"),
    "text partitions": ({"partitions": "8"}, "partitions must be a whole number"),
    "too many": ({"partitions": 4097}, "partitions must be at most 4,096"),
    "zone": ({"zone": "Mars/Base"}, "zone: 'Mars/Base' is not a time zone"),
    "zone as a path": ({"zone": "../../etc/passwd"}, "is not a time zone"),
    "bare number": ({"lag": 10}, "lag: 10 has no unit: write it like 500ms, 10s"),
    "true": ({"max_task_idle": False}, "max_task_idle: is not a duration"),
    "negative": ({"lag": "-5s"}, "lag: '-5s' is out of range"),
    "endless": ({"lag": "99999999999w"}, "out of range"),
    "no duration": (
        {"max_task_idle": "long"},
        "'long' is not a duration: write it like 500ms, 10s, 30m, 1h30m, 2d or 1w",
    ),
    "empty": ({"max_task_idle": None}, "max_task_idle: is empty: write a duration or forever"),
    "interval": ({"landing": {"every": "1d12h"}}, "landing.every: '1d12h' is not an interval"),
    "no interval": ({"landing": {"every": "0h"}}, "landing.every: '0h' is empty"),
    "end of what": ({"landing": {"watermark": "interval_end"}}, "landing: watermark: interval_end needs intervals"),
    "watermark": ({"landing": {"every": "1h", "watermark": "end"}}, "landing.watermark must be 'interval_end'"),
    "nested key": ({"landing": {"evry": "1h"}}, "landing.evry is not a known key: did you mean `every`?"),
    "no logs": ({"logs": {}}, "line 2: logs must not be empty"),
    "topic": ({"logs": {"a/b": {}}}, "is not a valid name"),
    "template": ({"zone": "{{ var.value.zone }}"}, "zone contains a template"),
}


@pytest.mark.parametrize(("keys", "said"), REFUSED_FEEDS.values(), ids=REFUSED_FEEDS)
def test_an_invalid_feed_is_refused_with_file_key_and_fix(tmp_path, keys, said):
    with pytest.raises(ConfigError) as caught:
        feed_with(tmp_path, **keys)
    assert str(caught.value).startswith("conf/feeds/activity.yaml, line ")
    assert said in str(caught.value)


REFUSED_LOGS = {
    "no source": ({"source": {}}, "logs.events.source: a source has exactly one of table, path with format, or job"),
    "two sources": ({"source": {"table": "a", "path": "b", "format": "csv"}}, "got table and path"),
    "path alone": ({"source": {"path": "b"}}, "path and format go together"),
    "job alone": ({"source": {"job": "b"}}, "job and output go together"),
    "format": (
        {"source": {"path": "b", "format": "avro"}},
        "source.format must be 'csv', 'json', 'parquet' or 'delta'",
    ),
    "options of a table": ({"source": {"table": "a", "options": {"x": "y"}}}, "options and schema apply to files"),
    "deep option": (
        {"source": {"path": "b", "format": "csv", "options": {"x": [1]}}},
        "options.x: must be a single value",
    ),
    "schema of parquet": (
        {"source": {"path": "b", "format": "parquet", "schema": "a int"}},
        "schema applies to csv and",
    ),
    "upwards": ({"source": {"path": "../b", "format": "csv"}}, "contains '..'"),
    "scheme": ({"source": {"path": "http://host/b", "format": "csv"}}, "http:// is not supported"),
    "new line": ({"source": {"path": "a\nb", "format": "csv"}}, "printable"),
    "nul": ({"key": "a\0b"}, "printable"),
    "table": ({"source": {"table": "a`; DROP TABLE b"}}, "is not a valid name"),
    "dots": ({"source": {"table": "a..b"}}, "joined by single dots"),
    "confusable": ({"source": {"table": "раw.events"}}, "is not a valid name"),  # noqa: RUF001  # a Cyrillic a and r
    "long": ({"source": {"table": "a" * 300}}, "1 to 200 printable characters"),
    "key": ({"key": "user id"}, "rename it with columns: {other_name: 'user id'}"),
    "key number": ({"key": 5}, "logs.events.key: 5 is not a list of columns"),
    "key twice": ({"key": ["a", "a"]}, "names a column twice"),
    "no key": ({"key": []}, "is not a list of columns"),
    "key in value": ({"key": "a", "value": ["a", "b"]}, "a is in both key and value"),
    "function": ({"timestamp": "jobs.x:"}, "is not a function"),
    "code": ({"timestamp": "jobs.x:f()"}, "is not a function"),
    "invalid": ({"invalid_timestamp": "drop"}, "must be 'fail', 'skip' or 'partition_time'"),
    "renamed twice": ({"columns": {"a": "x", "b": "x"}}, "columns renames a column twice"),
}


@pytest.mark.parametrize(("keys", "said"), REFUSED_LOGS.values(), ids=REFUSED_LOGS)
def test_an_invalid_log_is_refused_with_its_key(tmp_path, keys, said):
    with pytest.raises(ConfigError) as caught:
        log_with(tmp_path, **keys)
    assert re.match(r"conf/feeds/activity\.yaml, line \d: logs\.events", str(caught.value))
    assert said in str(caught.value)


REFUSED_JOBS = {
    "topology": ("topology: jobs/low.py", "topology: 'jobs/low.py' is not a function"),
    "schedule": ("schedule: hourly", "schedule: 'hourly' is not a cron schedule"),
    "minute": ("schedule: 61 * * * *", "minute 61 is not in the range 0 to 59"),
    "hour": ("schedule: 0-5,24 0-24/2 * * *", "hour 24 is not in the range 0 to 23"),
    "day 0": ("schedule: 0 0 0 * *", "day 0 is not in the range 1 to 31"),
    "month": ("schedule: 0 0 1 januar *", "'januar' is not a valid month"),
    "weekday": ("schedule: 0 0 * * mon,l", "'l' is not a valid weekday"),
    "random": ("schedule: R * * * *", "'R' is not a valid minute"),
    "step": ("schedule: '*/0 * * * *'", "the minute has a step of 0"),
    "never": ("schedule: 0 0 30,31 feb *", "would never run: month feb has no day 30,31"),
    "six fields": ("schedule: 0 10 * * * ?", "write five fields in quotes"),
    "semantics": ("semantics: {stream_time: mean}", "semantics.stream_time must be 'max' or 'min'"),
    "policy": ("on_error: {a: ignore}", "on_error='ignore' is not a policy: write fail, retry 3, quarantine"),
    "limit": ("limits: {store_rows: 0}", "limits.store_rows"),
    "no limit": ("limits: {heap: 5}", "limits.heap is not a known key"),
    "params": ("params: {a: 1}", "params is not a known key"),
    "own table": ("outputs: {a: {table: state.x}}", "uses a name that rewindow reserves"),
    "branch mark": ("outputs: {a: {table: x.y__z}}", "double underscore"),
    "table twice": ("outputs: {a: {table: x.y}, b: {table: x.y}}", "table x.y is written twice"),
    "table in table": ("outputs: {a: {table: x}, b: {table: x.y}}", "would lie inside the folder of table x"),
    "no list": ("outputs: {a: {table: x, expect: {rows: 1}}}", "outputs.a.expect must be a list"),
    "no expectation": ("outputs: {a: {table: x, expect: [{on_fail: warn}]}}", "there is no expectation: write one of"),
    "two expectations": (
        "outputs: {a: {table: x, expect: [{late: 1%, unique: key}]}}",
        "unique and late are two expectations",
    ),
    "twice the same": (
        "outputs: {a: {table: x, expect: [{late: 1%}, {late: 2%}]}}",
        "two expectations are named 'late'",
    ),
    "expected word": (
        "outputs: {a: {table: x, expect: [{late: 1%, on_fail: skip}]}}",
        "must be 'warn', 'hold' or 'fail'",
    ),
    "expected key": ("outputs: {a: {table: x, expect: [{not_nul: b}]}}", "expect.0.not_nul is not a known key"),
    "no columns": ("outputs: {a: {table: x, expect: [{not_null: []}]}}", "names no columns"),
    "a column twice": ("outputs: {a: {table: x, expect: [{unique: [b, b]}]}}", "names a column twice"),
    "unique word": ("outputs: {a: {table: x, expect: [{unique: keys}]}}", "is not key or a list of columns"),
    "no bounds": ("outputs: {a: {table: x, expect: [{range: {column: b}}]}}", "there is no bound"),
    "bound": ("outputs: {a: {table: x, expect: [{range: {column: b, min: true}}]}}", "True is not a bound"),
    "rows": ("outputs: {a: {table: x, expect: [{rows: {min: 2, max: 1}}]}}", "min 2 is above max 1"),
    "no values": ("outputs: {a: {table: x, expect: [{values: {column: b, allowed: []}}]}}", "must not be empty"),
    "no query": ("outputs: {a: {table: x, expect: [{sql: ' '}]}}", "is not a query"),
    "spark": ("spark: {driver.memory: 1g}", "spark is not a known key: Spark's settings belong to the target"),
    "name": ("job: other", "job is 'other', but must equal the file's name"),
}


@pytest.mark.parametrize(("line", "said"), REFUSED_JOBS.values(), ids=REFUSED_JOBS)
def test_an_invalid_job_is_refused(tmp_path, line, said):
    keys = {**yaml.safe_load(LOW_ACTIVITY), **yaml.safe_load(line)}
    with pytest.raises(ConfigError) as caught:
        job(tmp_path, yaml.safe_dump(keys))
    assert str(caught.value).startswith("conf/jobs/low_activity.yaml, line ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "schedule",
    [
        "*/15 * * * *",
        "0 0 l * *",
        "0 6-18/3 1,15 jan-MAR,12 MON-fri",
        "5 * ? * 1#2",
        "59 23 31 12 7",
        "*/90 * * * *",
        "@weekly",
    ],
)
def test_a_valid_schedule_is_unchanged(tmp_path, schedule):
    keys = {**yaml.safe_load(LOW_ACTIVITY), "schedule": schedule}
    assert job(tmp_path, yaml.safe_dump(keys)).schedule == schedule


def test_a_file_with_the_wrong_extension_is_refused(tmp_path):
    write(tmp_path, "jobs/weekly.yml", LOW_ACTIVITY)
    for load in (load_jobs, lambda root: load_job(root, "weekly")):
        with refused("config-file-misnamed", folder="jobs", file="weekly.yml", name="weekly"):
            load(tmp_path)


REFUSED_FILES = {
    "alias": ("a: &x [1]\nb: *x\n", "line 2, column 4: aliases (*name) are not supported"),
    "key twice": ("feed: a\nfeed: b\n", "line 2: duplicate key 'feed'"),
    "deep": ("a: " + "[" * 100 + "]" * 100, "more than 20 levels deep"),
    "tag": ("a: !!python/object/apply:os.system [ls]\n", "the tag !!python/object/apply:os.system is not supported"),
    "large": ("# " + "x" * 1_000_001, "larger than 1,000,000 bytes"),
    "list": ("- a\n- b\n", "is not a mapping of keys to values"),
    "empty": ("", "activity.yaml is empty"),
    "syntax": ("a: [1\n", "line 2"),
    "date": ("feed: 2013-02-31\n", "line 1: feed: '2013-02-31' is not a valid name"),
    "control": ("a: \x01\n", "line 1, column 4: the control character 0x01 is not YAML"),
    "unhashable": ("? [a]\n: b\n", "line 1, column 3: a key must be text"),
    "number key": ("1: b\n", "line 1: 1 is not a known key"),
}


@pytest.mark.parametrize(("text", "said"), REFUSED_FILES.values(), ids=REFUSED_FILES)
def test_a_file_that_is_not_a_small_yaml_mapping_is_refused(tmp_path, text, said):
    with pytest.raises(ConfigError) as caught:
        feed(tmp_path, text)
    assert "conf/feeds/activity.yaml" in str(caught.value)
    assert said in str(caught.value)


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    write(tmp_path, "feeds/activity.yaml", "")
    (tmp_path / "conf/feeds/activity.yaml").write_bytes(b"feed: \xff")
    with refused("config-file-not-utf8", line=1, byte=6):
        load_feed(tmp_path, "activity")


def test_a_file_without_permission_is_an_access_error(tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    write(tmp_path, "feeds/activity.yaml", FEED)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with refused("config-file-not-permitted"):
        load_feed(tmp_path, "activity")


def test_all_mistakes_are_reported_at_once(tmp_path):
    with pytest.raises(ConfigError) as caught:
        feed(tmp_path, "feed: activity\npartitions: 0\nzone: x\nlog: 1\n")
    lines = [line.partition(": ")[0] for line in str(caught.value).splitlines()]
    assert lines == [f"conf/feeds/activity.yaml, line {number}" for number in (2, 3, 4)]


def test_no_message_shows_the_value_of_a_spark_setting(tmp_path):
    with pytest.raises(ConfigError) as caught:
        job(tmp_path, LOW_ACTIVITY + "spark: {password: canary}\n")
    assert "canary" not in str(caught.value)


def test_a_missing_file_is_reported_with_the_available_ones(tmp_path):
    write(tmp_path, "feeds/activity.yaml", FEED)
    with pytest.raises(
        ConfigError, match=r"no conf/feeds/actvity.yaml in .*: did you mean `activity`\? available: activity"
    ):
        load_feed(tmp_path, "actvity")


def test_a_name_cannot_point_to_another_file(tmp_path):
    write(tmp_path, "feeds/activity.yaml", FEED)
    with refused("config-file-missing", folder="jobs"):
        load_job(tmp_path, "../feeds/activity")


def test_two_jobs_may_not_write_the_same_table(tmp_path):
    write(tmp_path, "jobs/a.yaml", "job: a\ntopology: jobs.a:b\nfeed: f\noutputs: {x: {table: t.x}}\n")
    write(tmp_path, "jobs/b.yaml", "job: b\ntopology: jobs.a:b\nfeed: f\noutputs: {x: {table: t.x}}\n")
    with refused("output-tables-overlap", job="a", reason=containing("table t.x is written twice")) as caught:
        load_jobs(tmp_path)
    assert str(caught.value).startswith("conf/jobs/b.yaml, line 4, column 22: ")
