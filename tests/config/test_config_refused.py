"""Invalid configuration is refused with file, key and fix, all mistakes at once, and without revealing secrets."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path

import pytest
import yaml

from rewindow.app.listing import names_in
from rewindow.config.load import find_project, load_feed, load_job, load_jobs, load_target, names_of
from rewindow.errors import ConfigError
from tests.config.written import FEED, LOW_ACTIVITY, feed, feed_with, job, log_with, write
from tests.refusals import containing, refused

INVALID, CONFLICT, TYPE = "config-value-invalid", "config-values-conflict", "config-type-wrong"
NOT_ALLOWED, RANGE, UNKNOWN = "config-value-not-allowed", "config-number-out-of-range", "config-key-unknown"
ZONE, DURATION, TIMES = "a time zone", "a duration", "a cron schedule"
Facts = dict[str, object]


def problem(key: str, words: str = "") -> Facts:
    """Return the facts of a value that is invalid by itself."""
    return {"key": key, "problem": containing(words)}


REFUSED_FEEDS: dict[str, tuple[Facts, str, Facts]] = {
    "unknown key": ({"partition": 8}, UNKNOWN, {"key": "partition", "fix": containing("`partitions`")}),
    "no partitions": ({"partitions": 0}, RANGE, {"key": "partitions", "bound": "least", "limit": 1}),
    "too many": ({"partitions": 4097}, RANGE, {"key": "partitions", "bound": "most", "limit": 4096}),
    "text partitions": ({"partitions": "8"}, TYPE, {"key": "partitions", "fix": ": remove the quotes"}),
    "zone": ({"zone": "Mars/Base"}, INVALID, problem("zone", "'Mars/Base'")),
    "zone as a path": ({"zone": "../../etc/passwd"}, INVALID, problem("zone", ZONE)),
    "bare number": ({"lag": 10}, INVALID, problem("lag", "no unit")),
    "true": ({"max_task_idle": False}, INVALID, problem("max_task_idle", DURATION)),
    "negative": ({"lag": "-5s"}, INVALID, problem("lag", "out of range")),
    "endless": ({"lag": "99999999999w"}, INVALID, problem("lag", "out of range")),
    "no duration": ({"max_task_idle": "long"}, INVALID, problem("max_task_idle", DURATION)),
    "empty": ({"max_task_idle": None}, INVALID, problem("max_task_idle", "is empty")),
    "interval": ({"landing": {"every": "1d12h"}}, INVALID, problem("landing.every", "an interval")),
    "no interval": ({"landing": {"every": "0h"}}, INVALID, problem("landing.every", "is empty")),
    "end of what": ({"landing": {"watermark": "interval_end"}}, CONFLICT, {"block": "landing: "}),
    "watermark": ({"landing": {"every": "1h", "watermark": "end"}}, NOT_ALLOWED, {"allowed": "'interval_end'"}),
    "nested key": ({"landing": {"evry": "1h"}}, UNKNOWN, {"key": "landing.evry", "fix": containing("`every`")}),
    "no logs": ({"logs": {}}, "config-items-missing", {"key": "logs"}),
    "topic": ({"logs": {"a/b": {}}}, INVALID, problem("logs.a/b", "a valid name")),
    "template": ({"zone": "{{ var.value.zone }}"}, "config-template-not-rendered", {"key": "zone"}),
    "another name": ({"feed": "activities"}, "config-name-differs", {"key": "feed", "given": "activities"}),
}


@pytest.mark.parametrize(("keys", "code", "facts"), REFUSED_FEEDS.values(), ids=REFUSED_FEEDS)
def test_an_invalid_feed_is_refused_with_file_and_key(tmp_path, keys, code, facts):
    with refused(code, **facts) as caught:
        feed_with(tmp_path, **keys)
    assert str(caught.value).startswith("conf/feeds/activity.yaml, line ")


SOURCE, KEY = "logs.events.source", "logs.events.key"
REFUSED_LOGS: dict[str, tuple[Facts, str, Facts]] = {
    "no source": ({"source": {}}, INVALID, problem(SOURCE, "got none")),
    "two sources": (
        {"source": {"table": "a", "path": "b", "format": "csv"}},
        INVALID,
        problem(SOURCE, "table and path"),
    ),
    "path alone": ({"source": {"path": "b"}}, INVALID, problem(SOURCE, "path and format")),
    "job alone": ({"source": {"job": "b"}}, INVALID, problem(SOURCE, "job and output")),
    "text": ({"source": "raw"}, TYPE, {"key": SOURCE}),
    "format": ({"source": {"path": "b", "format": "avro"}}, NOT_ALLOWED, {"key": f"{SOURCE}.format"}),
    "options of a table": ({"source": {"table": "a", "options": {"x": "y"}}}, CONFLICT, {"block": f"{SOURCE}: "}),
    "deep option": (
        {"source": {"path": "b", "format": "csv", "options": {"x": [1]}}},
        INVALID,
        problem(f"{SOURCE}.options.x", "a single value"),
    ),
    "schema of parquet": ({"source": {"path": "b", "format": "parquet", "schema": "a int"}}, CONFLICT, {}),
    "upwards": ({"source": {"path": "../b", "format": "csv"}}, INVALID, problem(f"{SOURCE}.path", "'..'")),
    "home": ({"source": {"path": "~/b", "format": "csv"}}, INVALID, problem(f"{SOURCE}.path", "begins with ~")),
    "scheme": ({"source": {"path": "http://host/b", "format": "csv"}}, INVALID, problem(f"{SOURCE}.path", "http://")),
    "new line": ({"source": {"path": "a\nb", "format": "csv"}}, INVALID, problem(f"{SOURCE}.path", "printable")),
    "nul": ({"key": "a\0b"}, INVALID, problem(KEY, "printable")),
    "table": ({"source": {"table": "a`; DROP TABLE b"}}, INVALID, problem(f"{SOURCE}.table", "a valid name")),
    "dots": ({"source": {"table": "a..b"}}, INVALID, problem(f"{SOURCE}.table", "single dots")),
    "confusable": ({"source": {"table": "r\u0430w.events"}}, INVALID, problem(f"{SOURCE}.table", "a valid name")),
    "long": ({"source": {"table": "a" * 300}}, INVALID, problem(f"{SOURCE}.table", "1 to 200")),
    "key": ({"key": "user id"}, INVALID, problem(KEY, "{other_name: 'user id'}")),
    "key number": ({"key": 5}, INVALID, problem(KEY, "a list of columns")),
    "key twice": ({"key": ["a", "a"]}, INVALID, problem(KEY, "a column twice")),
    "no key": ({"key": []}, INVALID, problem(KEY, "a list of columns")),
    "key in value": ({"key": "a", "value": ["a", "b"]}, CONFLICT, {"block": "logs.events: "}),
    "function": ({"timestamp": "jobs.x:"}, INVALID, problem("logs.events.timestamp", "a function")),
    "code": ({"timestamp": "jobs.x:f()"}, INVALID, problem("logs.events.timestamp", "a function")),
    "invalid": ({"invalid_timestamp": "drop"}, NOT_ALLOWED, {"key": "logs.events.invalid_timestamp"}),
    "renamed twice": ({"columns": {"a": "x", "b": "x"}}, CONFLICT, {"block": "logs.events: "}),
}


@pytest.mark.parametrize(("keys", "code", "facts"), REFUSED_LOGS.values(), ids=REFUSED_LOGS)
def test_an_invalid_log_is_refused_with_its_key(tmp_path, keys, code, facts):
    with refused(code, **facts) as caught:
        log_with(tmp_path, **keys)
    assert re.match(r"conf/feeds/activity\.yaml, line \d: logs\.events", str(caught.value))


REFUSED_JOBS: dict[str, tuple[str, str, Facts]] = {
    "topology": ("topology: jobs/low.py", INVALID, problem("topology", "a function")),
    "schedule": ("schedule: hourly", INVALID, problem("schedule", "five fields in quotes")),
    "minute": ("schedule: 61 * * * *", INVALID, problem("schedule", "minute 61")),
    "hour": ("schedule: 0-5,24 0-24/2 * * *", INVALID, problem("schedule", "hour 24")),
    "day 0": ("schedule: 0 0 0 * *", INVALID, problem("schedule", "day 0")),
    "month": ("schedule: 0 0 1 januar *", INVALID, problem("schedule", "'januar'")),
    "weekday": ("schedule: 0 0 * * mon,l", INVALID, problem("schedule", "'l'")),
    "random": ("schedule: R * * * *", INVALID, problem("schedule", "'R'")),
    "step": ("schedule: '*/0 * * * *'", INVALID, problem("schedule", "a step of 0")),
    "never": ("schedule: 0 0 30,31 feb *", INVALID, problem("schedule", "day 30,31")),
    "six fields": ("schedule: 0 10 * * * ?", INVALID, problem("schedule", TIMES)),
    "semantics": ("semantics: {stream_time: mean}", NOT_ALLOWED, {"key": "semantics.stream_time"}),
    "wall clock": ("semantics: {wall_clock: now}", NOT_ALLOWED, {"key": "semantics.wall_clock"}),
    "dropped": ("dropped: log", NOT_ALLOWED, {"key": "dropped"}),
    "policy": ("on_error: {a: ignore}", INVALID, problem("on_error.a", "'ignore'")),
    "limit": ("limits: {store_rows: 0}", RANGE, {"key": "limits.store_rows"}),
    "no limit": ("limits: {heap: 5}", UNKNOWN, {"key": "limits.heap"}),
    "params": ("params: {a: 1}", UNKNOWN, {"key": "params"}),
    "own table": ("outputs: {a: {table: state.x}}", INVALID, problem("outputs.a.table", "reserves")),
    "branch mark": ("outputs: {a: {table: x.y__z}}", INVALID, problem("outputs.a.table", "double underscore")),
    "table upwards": ("outputs: {a: {table: ../x}}", INVALID, problem("outputs.a.table", "a valid name")),
    "table twice": ("outputs: {a: {table: x.y}, b: {table: x.y}}", CONFLICT, {"block": "outputs: "}),
    "table in table": ("outputs: {a: {table: x}, b: {table: x.y}}", CONFLICT, {"block": "outputs: "}),
    "a text for a block": ("outputs: {a: x}", TYPE, {"key": "outputs.a"}),
    "no list": ("outputs: {a: {table: x, expect: {rows: 1}}}", TYPE, {"key": "outputs.a.expect"}),
    "no expectation": ("outputs: {a: {table: x, expect: [{on_fail: warn}]}}", CONFLICT, {}),
    "two expectations": ("outputs: {a: {table: x, expect: [{late: 1%, unique: key}]}}", CONFLICT, {}),
    "twice the same": ("outputs: {a: {table: x, expect: [{late: 1%}, {late: 2%}]}}", CONFLICT, {"block": ""}),
    "expected word": (
        "outputs: {a: {table: x, expect: [{late: 1%, on_fail: skip}]}}",
        NOT_ALLOWED,
        {"key": "outputs.a.expect.0.on_fail"},
    ),
    "expected key": (
        "outputs: {a: {table: x, expect: [{not_nul: b}]}}",
        UNKNOWN,
        {"key": "outputs.a.expect.0.not_nul"},
    ),
    "no columns": ("outputs: {a: {table: x, expect: [{not_null: []}]}}", INVALID, {}),
    "a column twice": ("outputs: {a: {table: x, expect: [{unique: [b, b]}]}}", INVALID, {}),
    "unique word": ("outputs: {a: {table: x, expect: [{unique: keys}]}}", INVALID, {}),
    "no bounds": ("outputs: {a: {table: x, expect: [{range: {column: b}}]}}", CONFLICT, {}),
    "bound": ("outputs: {a: {table: x, expect: [{range: {column: b, min: true}}]}}", INVALID, {}),
    "rows": ("outputs: {a: {table: x, expect: [{rows: {min: 2, max: 1}}]}}", CONFLICT, {}),
    "no values": ("outputs: {a: {table: x, expect: [{values: {column: b, allowed: []}}]}}", "config-items-missing", {}),
    "no share": ("outputs: {a: {table: x, expect: [{late: 0.5}]}}", INVALID, {}),
    "no query": ("outputs: {a: {table: x, expect: [{sql: ' '}]}}", INVALID, {}),
    "spark": ("spark: {driver.memory: 1g}", UNKNOWN, {"key": "spark", "fix": containing("conf/targets/NAME.yaml")}),
    "name": ("job: other", "config-name-differs", {"key": "job", "given": "other"}),
}


@pytest.mark.parametrize(("line", "code", "facts"), REFUSED_JOBS.values(), ids=REFUSED_JOBS)
def test_an_invalid_job_is_refused(tmp_path, line, code, facts):
    keys = {**yaml.safe_load(LOW_ACTIVITY), **yaml.safe_load(line)}
    with refused(code, **facts) as caught:
        job(tmp_path, yaml.safe_dump(keys))
    assert str(caught.value).startswith("conf/jobs/low_activity.yaml, line ")


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


SYNTAX = "yaml-syntax-wrong"
REFUSED_FILES: dict[str, tuple[str, str, Facts]] = {
    "alias": ("a: &x [1]\nb: *x\n", SYNTAX, {"position": "line 2, column 4"}),
    "deep": ("a: " + "[" * 100 + "]" * 100, SYNTAX, {"reason": containing("20 levels deep")}),
    "tag": ("a: !!python/object/apply:os.system [ls]\n", SYNTAX, {"reason": containing("!!python/object")}),
    "large": ("# " + "x" * 1_000_001, "config-file-too-large", {"limit": 1_000_000}),
    "list": ("- a\n- b\n", "yaml-file-not-mapping", {"position": "line 1"}),
    "empty": ("# to do\n", "yaml-file-empty", {}),
    "date": ("feed: 2013-02-31\n", INVALID, problem("feed", "'2013-02-31'")),
    "control": ("a: \x01\n", "control-character-in-yaml", {"position": "line 1, column 4", "character": 1}),
    "unhashable": ("? [a]\n: b\n", SYNTAX, {"position": "line 1, column 3"}),
    "laughs": ("a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n", SYNTAX, {"reason": containing("aliases")}),
}


@pytest.mark.parametrize(("text", "code", "facts"), REFUSED_FILES.values(), ids=REFUSED_FILES)
def test_a_file_that_is_not_a_small_yaml_mapping_is_refused(tmp_path, text, code, facts):
    with refused(code, **facts) as caught:
        feed(tmp_path, text)
    assert "conf/feeds/activity.yaml" in str(caught.value)


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


@pytest.mark.parametrize("kind", ["feeds", "jobs", "targets"])
def test_a_folder_without_permission_is_an_access_error(tmp_path, monkeypatch, kind):
    write(tmp_path, f"{kind}/activity.yaml", FEED)
    hide(monkeypatch, tmp_path / "conf" / kind)
    load = {"feeds": load_feed, "jobs": load_job, "targets": load_target}[kind]
    for refuse in (
        partial(load, tmp_path, "activity"),
        partial(names_of, tmp_path, kind),
        partial(names_in, tmp_path, kind),
    ):
        with refused("config-file-not-permitted", file=containing(f"conf/{kind}")) as caught:
            refuse()
        assert caught.value.exit_code == 77


def test_a_project_that_cannot_be_searched_is_an_access_error(tmp_path, monkeypatch):
    write(tmp_path, "feeds/activity.yaml", FEED)
    hide(monkeypatch, tmp_path)
    with refused("config-file-not-permitted", file=str(tmp_path / "conf")):
        find_project(tmp_path)


def hide(monkeypatch, folder):
    """Let the operating system refuse to list a folder, and to tell what is in it."""

    def refusing(original):
        def call(path, *args, **options):
            hidden = Path(path).parents if original.__name__.endswith("stat") else [Path(path)]
            if folder in hidden:
                raise PermissionError(13, "Permission denied", str(path))
            return original(path, *args, **options)

        return call

    for name in ("listdir", "scandir", "stat", "lstat"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))


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
    with refused("config-file-missing", name="actvity", fix=containing("`activity`")):
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
