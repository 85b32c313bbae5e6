"""Bounds in a job's file, and the times at which its schedule was due."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml

from rewindow.app.overview import last_due
from rewindow.config.job import JobConfig
from rewindow.config.load import read_model
from rewindow.errors import ConfigError

JOB = {"job": "a", "topology": "jobs.a:build", "feed": "b"}
NOW = datetime(2026, 11, 23, 9, 0, 30, tzinfo=UTC)


def load(tmp_path: Path, **alerts: object) -> JobConfig:
    path = tmp_path / "a.yaml"
    path.write_text(yaml.safe_dump({**JOB, "alerts": alerts}), encoding="utf-8")
    return read_model(path, "conf/jobs/a.yaml", JobConfig)


def test_bounds_are_read_and_are_none_by_default(tmp_path: Path) -> None:
    found = load(tmp_path, freshness="2h", late="0.5%", quarantined="0 %", size="2GiB", waiting=0).alerts
    assert (found.freshness_ms, found.late, found.quarantined, found.size) == (7_200_000, 0.005, 0.0, 2 << 30)
    assert (found.waiting, found.skipped, found.files, found.runs) == (0, None, None, 24)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("late", 0.01, "write a percentage from 0% to 100%"),
        ("late", "101%", "write a percentage from 0% to 100%"),
        ("freshness", "soon", "freshness"),
        ("waiting", -1, "waiting"),
        ("runs", 0, "runs"),
        ("lat", "1%", "late"),
    ],
)
def test_a_bound_that_is_none_is_refused_with_its_line(tmp_path: Path, key: str, value: object, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, **{key: value})
    assert says in str(refused.value)
    assert "line" in str(refused.value)


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("10 * * * *", ["2026-11-23 09:10", "2026-11-23 08:10"]),
        ("@daily", ["2026-11-23 00:00", "2026-11-22 00:00"]),
        ("*/15 2-4 * * mon-fri", ["2026-11-23 04:45", "2026-11-23 04:30"]),
        ("0 0 29 2 *", ["2024-02-29 00:00", "2020-02-29 00:00"]),
        ("0 0 L * *", ["2026-10-31 00:00", "2026-09-30 00:00"]),
        ("0 9 * * 1#2", ["2026-11-09 09:00", "2026-10-12 09:00"]),
        ("0 0 13 * 5", ["2026-11-20 00:00", "2026-11-13 00:00"]),
        ("0 6 * * fri-mon", ["2026-11-23 06:00", "2026-11-22 06:00"]),
        ("30 2 * 1,3 sun", ["2026-03-29 03:00", "2026-03-22 02:30"]),  # on the 29th, no clock shows 02:30
        ("@weekly", ["2026-11-22 00:00", "2026-11-15 00:00"]),
        ("0 0 * * 7", ["2026-11-22 00:00", "2026-11-15 00:00"]),
    ],
)
def test_the_last_times_at_which_a_schedule_was_due(cron: str, expected: list[str]) -> None:
    zone = "Europe/Berlin"
    found = last_due(cron, round(NOW.timestamp() * 1000), zone, 2)
    assert [datetime.fromtimestamp(ms / 1000, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M") for ms in found] == expected
