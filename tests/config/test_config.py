"""Feeds, jobs and targets: what is read, what is refused, and in which words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from rewindow.config.feed import FeedConfig
from rewindow.config.fingerprints import feed_fingerprint, semantics_fingerprint
from rewindow.config.job import JobConfig
from rewindow.config.load import find_project, load_feed, load_job, load_jobs, load_target, names_of, place_of
from rewindow.config.words import Every
from rewindow.core.settings import OnError
from rewindow.errors import AccessError, ConfigError
from rewindow.project import Project

ACTIVITY = """
feed: activity
partitions: 8
landing: {every: 1h, watermark: interval_end, max_ahead: 1h}
logs:
  events: {source: {table: raw.events}, key: user_id, timestamp: event_time, arrived_at: received_at}
"""
LOW_ACTIVITY = """
job: low_activity
topology: jobs.low_activity:build_topology
feed: activity
outputs:
  low-activity-alerts: {table: alerts.low_activity}
semantics: {stream_time_from: watermark}
schedule: "10 * * * *"
"""
LOG = "logs: {events: {source: {table: raw.events}, key: user_id, timestamp: event_time}}\n"
FEED = "feed: activity\npartitions: 8\n" + LOG


def write(root: Path, path: str, text: str) -> Path:
    file = root / "conf" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return root


def feed(tmp_path: Path, text: str) -> FeedConfig:
    return load_feed(write(tmp_path, "feeds/activity.yaml", text), "activity")


def feed_with(tmp_path: Path, **keys: object) -> FeedConfig:
    return feed(tmp_path, yaml.safe_dump({**yaml.safe_load(FEED), **keys}))


def log_with(tmp_path: Path, **keys: object) -> FeedConfig:
    log = {"source": {"table": "raw.events"}, "key": "user_id", "timestamp": "event_time", **keys}
    return feed_with(tmp_path, logs={"events": log})


def job(tmp_path: Path, text: str) -> JobConfig:
    return load_job(write(tmp_path, "jobs/low_activity.yaml", text), "low_activity")


def test_the_feed_of_the_design_is_read(tmp_path):
    activity = feed(tmp_path, ACTIVITY)
    assert activity.partitions == 8
    assert activity.landing.every == Every(1, "h")
    assert activity.landing.watermark == "interval_end"
    assert activity.landing.max_ahead_ms == 3_600_000
    events = activity.logs["events"]
    assert (events.source.kind, events.source.table) == ("table", "raw.events")
    assert (events.key, events.value, events.timestamp, events.arrived_at) == (
        "user_id",
        None,
        "event_time",
        "received_at",
    )


def test_the_job_of_the_design_is_read(tmp_path):
    low = job(tmp_path, LOW_ACTIVITY)
    assert low.topology == "jobs.low_activity:build_topology"
    assert low.outputs["low-activity-alerts"].table == "alerts.low_activity"
    assert low.semantics.stream_time_from == "watermark"
    assert (low.semantics.stream_time, low.semantics.wall_clock) == ("max", "stream_time")


def test_defaults_are_kafkas_and_the_designs(tmp_path):
    plain = feed(tmp_path, FEED)
    assert (plain.zone, plain.max_task_idle_ms, plain.lag_ms) == ("UTC", 0, 0)
    assert (plain.landing.every, plain.landing.watermark, plain.landing.max_ahead_ms) == (None, None, 86_400_000)
    assert plain.logs["events"].invalid_timestamp == "fail"


def test_a_target_says_where_things_are(tmp_path):
    write(tmp_path, "targets/local.yaml", "target: local\nwarehouse: warehouse\nspark: {spark.ui.enabled: true}\n")
    target = load_target(tmp_path)
    assert target.cores is None
    assert (target.lane, target.source) == ("auto", "auto")
    assert target.spark == {"spark.ui.enabled": "true"}
    assert place_of(tmp_path, target.warehouse) == str(tmp_path / "warehouse")
    assert place_of(tmp_path, "/data/warehouse") == "/data/warehouse"
    assert place_of(tmp_path, "s3://bucket/warehouse") == "s3://bucket/warehouse"


def test_a_target_may_take_every_record_by_itself(tmp_path):
    write(tmp_path, "targets/local.yaml", "target: local\nwarehouse: warehouse\nlane: record\n")
    assert load_target(tmp_path).lane == "record"
    write(tmp_path, "targets/local.yaml", "target: local\nwarehouse: warehouse\nsource: shuffled\n")
    assert load_target(tmp_path).source == "shuffled"
    write(tmp_path, "targets/local.yaml", "target: local\nwarehouse: warehouse\nlane: fast\n")
    with pytest.raises(ConfigError, match="lane"):
        load_target(tmp_path)


@pytest.mark.parametrize(
    ("written", "read"),
    [(0, 0), ("0", 0), ("forever", None), ("5m", 300_000), ("1h30m", 5_400_000)],
)
def test_max_task_idle_is_a_duration_or_forever(tmp_path, written, read):
    assert feed_with(tmp_path, max_task_idle=written).max_task_idle_ms == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("1h", Every(1, "h")),
        ("15m", Every(15, "m")),
        ("1h30m", Every(90, "m")),
        ("60m", Every(60, "m")),
        ("1d", Every(1, "d")),
        ("2w", Every(2, "w")),
        ("1mo", Every(1, "mo")),
        ("1y", Every(1, "y")),
    ],
)
def test_every_is_a_length_or_a_calendar_unit(tmp_path, written, read):
    assert feed_with(tmp_path, landing={"every": written}).landing.every == read


def test_max_ahead_none_switches_the_guard_off(tmp_path):
    assert feed_with(tmp_path, landing={"max_ahead": "none"}).landing.max_ahead_ms is None


def test_a_key_or_value_of_several_columns_is_a_list(tmp_path):
    log = log_with(tmp_path, key=["carrier", "origin"], value=["delay"], order=["flight"]).logs["events"]
    assert (log.key, log.value, log.order) == (("carrier", "origin"), ("delay",), ("flight",))


def test_files_have_a_path_a_format_options_and_a_schema(tmp_path):
    source = {"path": "in/*.csv", "format": "csv", "options": {"header": True, "sep": ";"}, "schema": "a string"}
    read = log_with(tmp_path, source=source).logs["events"].source
    assert (read.kind, read.options, read.schema_ddl) == ("path", {"header": "true", "sep": ";"}, "a string")


REFUSED_FEEDS = {
    "unknown key": ({"partition": 8}, "partition is no key here: did you mean partitions? Known: feed, partitions,"),
    "no partitions": ({"partitions": 0}, "partitions: input should be greater than or equal to 1"),
    "text partitions": ({"partitions": "8"}, "partitions: input should be a valid integer"),
    "too many": ({"partitions": 4097}, "partitions: input should be less than or equal to 4096"),
    "zone": ({"zone": "Mars/Base"}, "zone: 'Mars/Base' is no time zone"),
    "zone as a path": ({"zone": "../../etc/passwd"}, "is no time zone"),
    "bare number": ({"lag": 10}, "lag: 10 has no unit: write it like 500ms, 10s"),
    "true": ({"max_task_idle": False}, "max_task_idle: False has no unit"),
    "negative": ({"lag": "-5s"}, "lag: '-5s' is out of bounds"),
    "endless": ({"lag": "99999999999w"}, "out of bounds"),
    "no duration": ({"max_task_idle": "long"}, "'long' is no duration: write it like 500ms, 10s, 30m, 1h30m, 2d or 1w"),
    "empty": ({"max_task_idle": None}, "max_task_idle: is empty: write a duration or forever"),
    "interval": ({"landing": {"every": "1d12h"}}, "landing.every: '1d12h' is no interval"),
    "no interval": ({"landing": {"every": "0h"}}, "landing.every: '0h' is nothing"),
    "end of what": ({"landing": {"watermark": "interval_end"}}, "landing: watermark: interval_end needs intervals"),
    "watermark": ({"landing": {"every": "1h", "watermark": "end"}}, "landing.watermark must be 'interval_end'"),
    "nested key": ({"landing": {"evry": "1h"}}, "landing.evry is no key here: did you mean every?"),
    "no logs": ({"logs": {}}, "logs: "),
    "topic": ({"logs": {"a/b": {}}}, "is no name"),
    "template": ({"zone": "{{ var.value.zone }}"}, "zone holds a template"),
}


@pytest.mark.parametrize(("keys", "said"), REFUSED_FEEDS.values(), ids=REFUSED_FEEDS)
def test_a_wrong_feed_is_refused_with_file_key_and_fix(tmp_path, keys, said):
    with pytest.raises(ConfigError) as refused:
        feed_with(tmp_path, **keys)
    assert str(refused.value).startswith("conf/feeds/activity.yaml: ")
    assert said in str(refused.value)


REFUSED_LOGS = {
    "no source": ({"source": {}}, "logs.events.source: a source is exactly one of table, path with format, job"),
    "two sources": ({"source": {"table": "a", "path": "b", "format": "csv"}}, "here is both table and path"),
    "path alone": ({"source": {"path": "b"}}, "path and format go together"),
    "job alone": ({"source": {"job": "b"}}, "job and output go together"),
    "format": (
        {"source": {"path": "b", "format": "avro"}},
        "source.format must be 'csv', 'json', 'parquet' or 'delta'",
    ),
    "options of a table": ({"source": {"table": "a", "options": {"x": "y"}}}, "options and schema are for files"),
    "deep option": ({"source": {"path": "b", "format": "csv", "options": {"x": [1]}}}, "options.x: is no single value"),
    "schema of parquet": ({"source": {"path": "b", "format": "parquet", "schema": "a int"}}, "schema is for csv and"),
    "upwards": ({"source": {"path": "../b", "format": "csv"}}, "goes up by '..'"),
    "scheme": ({"source": {"path": "http://host/b", "format": "csv"}}, "http:// is no place that can be read"),
    "new line": ({"source": {"path": "a\nb", "format": "csv"}}, "printable"),
    "nul": ({"key": "a\0b"}, "printable"),
    "table": ({"source": {"table": "a`; DROP TABLE b"}}, "is no name"),
    "dots": ({"source": {"table": "a..b"}}, "joined by single dots"),
    "confusable": ({"source": {"table": "раw.events"}}, "is no name"),  # noqa: RUF001  # a Cyrillic a and r
    "long": ({"source": {"table": "a" * 300}}, "1 to 200 printable characters"),
    "key": ({"key": "user id"}, "rename it, columns: {other_name: 'user id'}"),
    "key number": ({"key": 5}, "logs.events.key: 5 is no list of columns"),
    "key twice": ({"key": ["a", "a"]}, "names a column twice"),
    "no key": ({"key": []}, "is no list of columns"),
    "key in value": ({"key": "a", "value": ["a", "b"]}, "a is in key and in value"),
    "function": ({"timestamp": "jobs.x:"}, "names no function"),
    "code": ({"timestamp": "jobs.x:f()"}, "names no function"),
    "invalid": ({"invalid_timestamp": "drop"}, "must be 'fail', 'skip' or 'partition_time'"),
    "renamed twice": ({"columns": {"a": "x", "b": "x"}}, "columns renames a column twice"),
}


@pytest.mark.parametrize(("keys", "said"), REFUSED_LOGS.values(), ids=REFUSED_LOGS)
def test_a_wrong_log_is_refused_with_its_key(tmp_path, keys, said):
    with pytest.raises(ConfigError) as refused:
        log_with(tmp_path, **keys)
    assert "conf/feeds/activity.yaml: logs.events" in str(refused.value)
    assert said in str(refused.value)


REFUSED_JOBS = {
    "topology": ("topology: jobs/low.py", "topology: 'jobs/low.py' names no function"),
    "schedule": ("schedule: hourly", "schedule: 'hourly' is no cron schedule"),
    "semantics": ("semantics: {stream_time: mean}", "semantics.stream_time must be 'max' or 'min'"),
    "policy": ("on_error: {a: ignore}", "on_error='ignore' is no policy: write fail, retry 3, quarantine"),
    "limit": ("limits: {store_rows: 0}", "limits.store_rows"),
    "no limit": ("limits: {heap: 5}", "limits.heap is no key here"),
    "params": ("params: {a: 1}", "params is no key here"),
    "own table": ("outputs: {a: {table: state.x}}", "lies where rewindow keeps its own"),
    "lineage mark": ("outputs: {a: {table: x.y__z}}", "double underscore"),
    "table twice": ("outputs: {a: {table: x.y}, b: {table: x.y}}", "the table x.y is written twice"),
    "table in table": ("outputs: {a: {table: x}, b: {table: x.y}}", "would lie inside the folder of x"),
    "spark": ("spark: {driver.memory: 1g}", "'driver.memory' is no Spark setting"),
    "name": ("job: other", "job is 'other': a file is called as its job"),
}


@pytest.mark.parametrize(("line", "said"), REFUSED_JOBS.values(), ids=REFUSED_JOBS)
def test_a_wrong_job_is_refused(tmp_path, line, said):
    keys = {**yaml.safe_load(LOW_ACTIVITY), **yaml.safe_load(line)}
    with pytest.raises(ConfigError) as refused:
        job(tmp_path, yaml.safe_dump(keys))
    assert "conf/jobs/low_activity.yaml: " in str(refused.value)
    assert said in str(refused.value)


REFUSED_FILES = {
    "alias": ("a: &x [1]\nb: *x\n", "line 2: an alias (*name) is not taken here"),
    "key twice": ("feed: a\nfeed: b\n", "line 2: the key 'feed' is there twice"),
    "deep": ("a: " + "[" * 100 + "]" * 100, "more than 20 levels deep"),
    "tag": ("a: !!python/object/apply:os.system [ls]\n", "could not determine a constructor"),
    "large": ("# " + "x" * 1_000_001, "larger than 1,000,000 bytes"),
    "list": ("- a\n- b\n", "is no mapping of keys to values"),
    "empty": ("", "is no mapping of keys to values"),
    "syntax": ("a: [1\n", "line 2"),
    "date": ("a: 2013-02-31\n", "is not YAML: day is out of range"),
    "control": ("a: \x01\n", "is not YAML"),
    "unhashable": ("? [a]\n: b\n", "found unhashable key"),
    "number key": ("1: b\n", "conf/feeds/activity.yaml: 1"),
}


@pytest.mark.parametrize(("text", "said"), REFUSED_FILES.values(), ids=REFUSED_FILES)
def test_a_file_that_is_no_plain_yaml_is_refused(tmp_path, text, said):
    with pytest.raises(ConfigError) as refused:
        feed(tmp_path, text)
    assert "conf/feeds/activity.yaml" in str(refused.value)
    assert said in str(refused.value)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    write(tmp_path, "feeds/activity.yaml", "")
    (tmp_path / "conf/feeds/activity.yaml").write_bytes(b"feed: \xff")
    with pytest.raises(ConfigError, match=r"is not UTF-8 \(byte 6\)"):
        load_feed(tmp_path, "activity")


def test_a_file_without_permission_is_a_matter_of_access(tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    write(tmp_path, "feeds/activity.yaml", FEED)
    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(AccessError, match="may not be read"):
        load_feed(tmp_path, "activity")


def test_every_mistake_is_named_at_once(tmp_path):
    with pytest.raises(ConfigError) as refused:
        feed(tmp_path, "feed: activity\npartitions: 0\nzone: x\nlog: 1\n")
    assert len(str(refused.value).splitlines()) == 4


def test_no_message_shows_the_value_of_a_spark_setting(tmp_path):
    with pytest.raises(ConfigError) as refused:
        job(tmp_path, LOW_ACTIVITY + "spark: {password: canary}\n")
    assert "canary" not in str(refused.value)


def test_an_absent_file_is_told_with_those_that_are_there(tmp_path):
    write(tmp_path, "feeds/activity.yaml", FEED)
    with pytest.raises(ConfigError, match=r"no conf/feeds/actvity.yaml in .*: there are activity"):
        load_feed(tmp_path, "actvity")


def test_a_name_reaches_no_other_file(tmp_path):
    write(tmp_path, "feeds/activity.yaml", FEED)
    with pytest.raises(ConfigError, match="no conf/jobs/"):
        load_job(tmp_path, "../feeds/activity")


def test_two_jobs_may_not_write_one_table(tmp_path):
    write(tmp_path, "jobs/a.yaml", "job: a\ntopology: jobs.a:b\nfeed: f\noutputs: {x: {table: t.x}}\n")
    write(tmp_path, "jobs/b.yaml", "job: b\ntopology: jobs.a:b\nfeed: f\noutputs: {x: {table: t.x}}\n")
    with pytest.raises(ConfigError, match=r"conf/jobs: the table t\.x is written twice"):
        load_jobs(tmp_path)


def test_the_project_is_the_nearest_folder_with_conf(tmp_path):
    write(tmp_path, "feeds/activity.yaml", FEED)
    inside = tmp_path / "jobs" / "deep"
    inside.mkdir(parents=True)
    assert find_project(inside) == tmp_path
    assert names_of(find_project(inside), "feeds") == ["activity"]


def test_no_project_says_where_to_go(tmp_path):
    with pytest.raises(ConfigError, match="go to the project's root"):
        find_project(tmp_path)


def test_the_projects_own_configuration_is_sound():
    root = find_project(Path(__file__).parent)
    assert all(load_feed(root, name) for name in names_of(root, "feeds"))
    jobs = load_jobs(root)
    assert {job.feed for job in jobs.values()} <= set(names_of(root, "feeds"))
    assert load_target(root)


@pytest.mark.parametrize(
    "later_only",
    [{"lag": "5m"}, {"max_task_idle": "forever"}, {"landing": {"max_ahead": "1h"}}, {"zone": "UTC"}],
)
def test_what_holds_for_later_landings_is_not_in_the_fingerprint(tmp_path, later_only):
    assert feed_fingerprint(feed_with(tmp_path, **later_only)) == feed_fingerprint(feed(tmp_path, FEED))


def test_a_watermark_is_not_in_the_fingerprint(tmp_path):
    with_watermark = feed_with(tmp_path, landing={"every": "1h", "watermark": "interval_end"})
    assert feed_fingerprint(with_watermark) == feed_fingerprint(feed_with(tmp_path, landing={"every": "1h"}))


@pytest.mark.parametrize(
    "keys",
    [
        {"partitions": 9},
        {"zone": "Europe/Berlin"},
        {"landing": {"every": "1h"}},
        {"logs": {"events": {"source": {"table": "raw.events"}, "key": ["user_id"], "timestamp": "event_time"}}},
        {"logs": {"events": {"source": {"table": "raw.other"}, "key": "user_id", "timestamp": "event_time"}}},
    ],
)
def test_what_makes_other_landings_is_in_the_fingerprint(tmp_path, keys):
    assert feed_fingerprint(feed_with(tmp_path, **keys)) != feed_fingerprint(feed(tmp_path, FEED))


def test_the_fingerprint_of_a_feed_never_changes_by_itself(tmp_path):
    assert (
        feed_fingerprint(feed(tmp_path, ACTIVITY)) == "01bbbde6a2fad0955feaa4030e7c295bf99080b2e1dcfcaed5bca0e7def03afc"
    )


def test_the_fingerprint_of_semantics_covers_semantics_only(tmp_path):
    plain = job(tmp_path, LOW_ACTIVITY.replace("semantics: {stream_time_from: watermark}", ""))
    spelled_out = job(tmp_path, LOW_ACTIVITY.replace("stream_time_from: watermark", "stream_time: max"))
    other = job(tmp_path, LOW_ACTIVITY)
    assert semantics_fingerprint(plain) == semantics_fingerprint(spelled_out) != semantics_fingerprint(other)


def test_policies_and_limits_of_a_job(tmp_path):
    keys = "on_error: {enrich: retry 2 quarantine}\nlimits: {store_rows: 5}\n"
    given = job(tmp_path, LOW_ACTIVITY + keys)
    assert given.on_error == {"enrich": OnError(2, quarantines=True)}
    assert (given.limits.store_rows, given.limits.outputs_per_record) == (5, 1_000_000)


def test_configuration_is_frozen(tmp_path):
    with pytest.raises(ValueError, match="frozen"):
        feed(tmp_path, FEED).partitions = 9


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"master": "spark://h:7077", "connect": "sc://h", "cores": 2}, "two places of work"),
        ({"master": "spark://h:7077"}, "add cores: N"),
        ({"master": "local[4]", "cores": 4}, "is no cluster"),
        ({"connect": "http://h", "cores": 4}, "sc://host:15002"),
        ({"ships": ["dist/a.whl"]}, "add master or connect"),
        ({"commit": "spark"}, "go together"),
        ({"staging": "rows", "catalog": "main.rewindow"}, "go together"),
        ({"commit": "spark", "staging": "rows", "catalog": "main"}, "main.rewindow"),
    ],
)
def test_a_target_that_works_elsewhere_says_where_and_how_much(tmp_path: Path, given: dict[str, object], named: str):
    folder = tmp_path / "conf" / "targets"
    folder.mkdir(parents=True)
    (folder / "there.yaml").write_text(yaml.safe_dump({"target": "there", "warehouse": "w", **given}))
    with pytest.raises(ConfigError, match=re.escape(named)):
        load_target(tmp_path, "there")


@pytest.mark.parametrize(
    "place", ["s3://bucket/w", "abfss://c@a/w", "gs://b/w", "dbfs://w", "/Volumes/main/w", "/dbfs/w"]
)
def test_storage_without_put_if_absent_is_refused(tmp_path: Path, place: str):
    folder = tmp_path / "conf" / "targets"
    folder.mkdir(parents=True)
    (folder / "there.yaml").write_text(yaml.safe_dump({"target": "there", "warehouse": place}))
    with pytest.raises(ConfigError, match="only if none is there"):
        Project.open(tmp_path, "there")
