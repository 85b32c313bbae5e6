"""The alert rules of the monitoring page: what can be executed is, and what names metrics names those that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from rewindow.app import alert_bounds, overview
from rewindow.app.telemetry.spans_and_metrics import METRICS
from rewindow.config.field_types import valid_cron
from tests.docs.blocks import Block, blocks_of

PAGE = "docs/guides/monitoring.md"
FEED = {"feed": "orders", "level": "ok", "age_ms": 5, "behind_share": None, "quarantined_share": 0.0}
JOB = {"job": "daily", "level": "broken", "age_ms": None, "waiting": 2, "late_share": 0.25, "restore_runs": 7}
STATUS = {"branch": "main", "as_of_ms": 1_500, "feeds": [FEED], "jobs": [JOB]}
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_seconds_count", "_seconds_sum", "_seconds_bucket")}


def blocks() -> list[Block]:
    return blocks_of(PAGE)


def rules() -> list[dict[str, Any]]:
    groups = [yaml.safe_load(block.text)["groups"] for block in blocks() if block.text.startswith("groups:")]
    return [rule for group in groups for part in group for rule in part["rules"]]


def exported(tmp_path: Path) -> list[str]:
    (script,) = [block.text for block in blocks() if block.markers.get("file") == "metrics.py"]
    (tmp_path / "metrics.py").write_text(script, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "metrics.py")]
    done = subprocess.run(command, input=json.dumps(STATUS), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_script_for_prometheus_writes_its_text_format(tmp_path: Path) -> None:
    lines = exported(tmp_path)
    assert lines[0] == "rewindow_status_time_seconds 1.5"
    assert 'rewindow_status_level{kind="job",name="daily",branch="main"} 2' in lines
    assert 'rewindow_status_late_share{kind="job",name="daily",branch="main"} 0.25' in lines
    assert not any("None" in line or "null" in line for line in lines)
    form = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?\d+(\.\d+)?')
    assert all(form.fullmatch(line) for line in lines), lines


def test_every_figure_that_the_script_takes_is_one_of_status() -> None:
    (script,) = [block.text for block in blocks() if block.markers.get("file") == "metrics.py"]
    namespace: dict[str, Any] = {"__name__": "page"}
    exec(script, namespace)  # noqa: S102 - the page's own code
    source = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in (overview, alert_bounds))
    assert all(f'"{name}"' in source or name.endswith("_share") for name in namespace["GAUGES"])


def test_the_rules_name_metrics_that_are_exported(tmp_path: Path) -> None:
    own = {line.partition("{")[0].partition(" ")[0] for line in exported(tmp_path)}
    telemetry = {f"rewindow_{name}{end}" for name, one in METRICS.items() for end in SUFFIXES[one.instrument]}
    used = {name for rule in rules() for name in re.findall(r"rewindow_[a-z_]+(?=[{\[) ]|$)", rule["expr"])}
    labels = {"rewindow_job", "rewindow_command", "rewindow_outcome"}
    assert used - labels
    assert used <= own | telemetry | labels
    assert len({rule["alert"] for rule in rules()}) == len(rules()) == 7


def test_the_line_for_cron_has_a_valid_schedule_and_checks_the_exit_code() -> None:
    (line,) = [block.text for block in blocks() if "/srv/shop && rewindow" in block.text]
    schedule, _, command = line.partition("  ")
    assert valid_cron(schedule) == schedule
    assert "rewindow status >" in command
    assert "|| mail" in command
