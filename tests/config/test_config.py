"""Reading feeds, jobs, targets and projects: values and defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from rewindow.app.bind_job import limits_of
from rewindow.config.field_types import Every
from rewindow.config.job import LimitsConfig
from rewindow.config.load import find_project, load_feed, load_jobs, load_target, location_of, names_of
from rewindow.errors import ConfigError
from rewindow.streams.settings import OnError
from tests.config.written import ACTIVITY, FEED, LOW_ACTIVITY, feed, feed_with, job, log_with, write
from tests.refusals import refused


def test_a_feed_is_read(tmp_path):
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


def test_a_job_is_read(tmp_path):
    low = job(tmp_path, LOW_ACTIVITY)
    assert low.topology == "jobs.low_activity:build_topology"
    assert low.outputs["low-activity-alerts"].table == "alerts.low_activity"
    assert low.semantics.stream_time_from == "watermark"
    assert (low.semantics.stream_time, low.semantics.wall_clock) == ("max", "stream_time")


def test_defaults_follow_kafka_and_the_design(tmp_path):
    defaults = feed(tmp_path, FEED)
    assert (defaults.zone, defaults.max_task_idle_ms, defaults.lag_ms) == ("UTC", 0, 0)
    assert (defaults.landing.every, defaults.landing.watermark, defaults.landing.max_ahead_ms) == (
        None,
        None,
        86_400_000,
    )
    assert defaults.logs["events"].invalid_timestamp == "fail"


def test_a_target_is_read(tmp_path):
    write(tmp_path, "targets/local.yaml", "target: local\nwarehouse: warehouse\nspark: {spark.ui.enabled: true}\n")
    target = load_target(tmp_path)
    assert target.cores is None
    assert (target.execution, target.source) == ("auto", "auto")
    assert target.spark == {"spark.ui.enabled": "true"}
    assert location_of(tmp_path, target.warehouse) == str(tmp_path / "warehouse")
    assert location_of(tmp_path, "/data/warehouse") == "/data/warehouse"
    assert location_of(tmp_path, "s3://bucket/warehouse") == "s3://bucket/warehouse"


@pytest.mark.parametrize(("jobs", "used"), [(None, 384 << 20), (64 << 20, 64 << 20), (1 << 30, 384 << 20)])
def test_a_target_caps_the_memory_of_stores_but_does_not_raise_it(tmp_path, jobs, used):
    write(tmp_path, "targets/local.yaml", "target: local\nwarehouse: warehouse\nstore_memory: 384MiB\n")
    config = job(tmp_path, LOW_ACTIVITY)
    if jobs is not None:
        config = config.model_copy(update={"limits": LimitsConfig(store_memory=jobs)})
    assert limits_of(config, load_target(tmp_path)).store_memory == used


def test_a_target_may_choose_record_execution_and_the_shuffle_reader(tmp_path):
    write(tmp_path, "targets/local.yaml", "target: local\nwarehouse: warehouse\nexecution: record\n")
    assert load_target(tmp_path).execution == "record"
    write(tmp_path, "targets/local.yaml", "target: local\nwarehouse: warehouse\nexecution: vectorized\n")
    assert load_target(tmp_path).execution == "vectorized"
    write(tmp_path, "targets/local.yaml", "target: local\nwarehouse: warehouse\nsource: shuffle\n")
    assert load_target(tmp_path).source == "shuffle"
    write(tmp_path, "targets/local.yaml", "target: local\nwarehouse: warehouse\nexecution: fast\n")
    with refused("config-value-not-allowed", key="execution"):
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


def test_max_ahead_none_disables_the_limit(tmp_path):
    assert feed_with(tmp_path, landing={"max_ahead": "none"}).landing.max_ahead_ms is None


def test_a_key_or_value_of_several_columns_is_a_list(tmp_path):
    log = log_with(tmp_path, key=["carrier", "origin"], value=["delay"], order=["flight"]).logs["events"]
    assert (log.key, log.value, log.order) == (("carrier", "origin"), ("delay",), ("flight",))


def test_files_have_a_path_a_format_options_and_a_schema(tmp_path):
    source = {"path": "in/*.csv", "format": "csv", "options": {"header": True, "sep": ";"}, "schema": "a string"}
    read = log_with(tmp_path, source=source).logs["events"].source
    assert (read.kind, read.options, read.schema_ddl) == ("path", {"header": "true", "sep": ";"}, "a string")


def test_the_project_is_the_nearest_folder_with_a_conf_folder(tmp_path):
    write(tmp_path, "feeds/activity.yaml", FEED)
    inside = tmp_path / "jobs" / "deep"
    inside.mkdir(parents=True)
    assert find_project(inside) == tmp_path
    assert names_of(find_project(inside), "feeds") == ["activity"]


def test_no_project_says_where_to_go(tmp_path):
    with refused("project-folder-missing"):
        find_project(tmp_path)


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, int], None]:
    """A function that gives a file to another user, or lets this process be one."""

    def give(path: Path, user: int) -> None:
        if os.getuid() == 0:
            os.chown(path, user, -1, follow_symlinks=False)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: user)

    (tmp_path / "conf").mkdir()
    (tmp_path / "jobs" / "deep").mkdir(parents=True)
    return give


@pytest.mark.parametrize("folder", [".", "conf"])
def test_a_project_of_another_user_is_taken_only_if_it_is_named(
    stranger: Callable[[Path, int], None], tmp_path: Path, folder: str
) -> None:
    stranger(tmp_path / folder, 4321)
    for inside in (tmp_path / "jobs", tmp_path / "jobs" / "deep"):
        with refused("project-not-trusted", root=tmp_path, start=inside) as caught:
            find_project(inside)
        assert caught.value.exit_code == 77
    assert find_project(tmp_path) == tmp_path


def test_who_uses_sudo_keeps_trusting_the_own_project(
    stranger: Callable[[Path, int], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path, tmp_path / "conf"):
        if os.getuid() == 0:
            stranger(folder, 4321)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", str(tmp_path.stat().st_uid))
    assert find_project(tmp_path / "jobs") == tmp_path


@pytest.mark.parametrize("folder", [".", "conf"])
def test_a_project_that_everyone_can_write_is_taken_only_if_it_is_named(
    stranger: Callable[[Path, int], None], tmp_path: Path, folder: str
) -> None:
    (tmp_path / folder).chmod(0o1777)
    with refused("project-not-trusted", folder=tmp_path / folder, why="is writable for everyone"):
        find_project(tmp_path / "jobs")
    assert find_project(tmp_path) == tmp_path


def test_a_link_of_another_user_to_a_trusted_folder_is_no_project(
    stranger: Callable[[Path, int], None], tmp_path: Path
) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give files away")
    (tmp_path / "conf").rename(tmp_path / "real")
    (tmp_path / "conf").symlink_to(tmp_path / "real")
    stranger(tmp_path / "conf", 4321)
    with refused("project-not-trusted", folder=tmp_path / "conf"):
        find_project(tmp_path / "jobs")


def test_a_folder_whose_name_is_not_utf8_is_no_project(tmp_path: Path) -> None:
    root = tmp_path / "\udcff"
    (root / "conf").mkdir(parents=True)
    with refused("name-not-utf8", name=str(root)) as caught:
        find_project(root)
    assert caught.value.exit_code == 78


def test_this_projects_configuration_is_valid():
    root = find_project(Path(__file__).parent)
    assert all(load_feed(root, name) for name in names_of(root, "feeds"))
    jobs = load_jobs(root)
    assert {job.feed for job in jobs.values()} <= set(names_of(root, "feeds"))
    assert load_target(root)


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
        ({"master": "spark://h:7077", "connect": "sc://h", "cores": 2}, "exclude each other"),
        ({"master": "spark://h:7077"}, "add cores: N"),
        ({"master": "local[4]", "cores": 4}, "is not a cluster"),
        ({"connect": "http://h", "cores": 4}, "sc://host:15002"),
        ({"ships": ["dist/a.whl"]}, "add master or connect"),
        ({"commit": "spark"}, "go together"),
        ({"staging": "rows", "catalog": "main.rewindow"}, "go together"),
        ({"commit": "spark", "staging": "rows", "catalog": "main"}, "main.rewindow"),
    ],
)
def test_inconsistent_settings_of_a_remote_target_are_refused(tmp_path: Path, given: dict[str, object], named: str):
    folder = tmp_path / "conf" / "targets"
    folder.mkdir(parents=True)
    (folder / "there.yaml").write_text(yaml.safe_dump({"target": "there", "warehouse": "w", **given}))
    with pytest.raises(ConfigError, match=re.escape(named)):
        load_target(tmp_path, "there")
