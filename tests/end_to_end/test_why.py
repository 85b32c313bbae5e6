"""`rewindow why` on the projects that `init` makes: its records alone give each row in the test driver."""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rewindow.app.cli.entry import run_command
from rewindow.app.cli.times import show_instant
from rewindow.streams.record import Windowed, row_class
from rewindow.streams.semantics import Semantics
from rewindow.testing import TopologyTestDriver
from tests.bad_input.workers import on_spark
from tests.conftest import ROOT

EXAMPLES = {
    "windows": ("orders", "daily_orders", "daily-orders"),
    "sessions": ("clicks", "visits", "visits"),
    "processor": ("readings", "silent_sensors", "silent-sensors"),
    "join": ("shop", "sales", "sales"),
}
"""Of each example the feed, the job and the output."""


@pytest.fixture(autouse=True)
def _own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let each project import its own `jobs`, and not this repository's."""
    monkeypatch.setattr("sys.path", [path for path in sys.path if Path(path or ".").resolve() != ROOT])
    monkeypatch.chdir(tmp_path)
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "jobs"}
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "jobs"]:
        del sys.modules[name]
    sys.modules.update(hidden)


def call(*words: str) -> dict[str, Any]:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        code = run_command([*words, "--json"])
    assert code == 0, out.getvalue()
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


@pytest.mark.spark
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_records_that_why_names_give_each_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    feed, job, output = EXAMPLES[example]
    call("init", "--example", example)
    monkeypatch.syspath_prepend(str(tmp_path))
    with on_spark(spark):
        call("land", feed)
        call("run", job)
    build = importlib.import_module(f"jobs.{job}").build_topology
    rows = call("head", job, "-n", "100")["tables"][0]["rows"]
    assert rows
    for row in rows:
        key = next(iter(row))
        window = ["--window", str(row["window_start"])] if "window_start" in row else []
        found = call("why", job, str(row[key]), *iso(window))
        assert found["is_reproduced"], found
        assert found["is_exact"], found
        wanted = {name: value for name, value in found["row"].items() if not name.startswith("_")}
        driven = [as_columns(record) for record in replayed(build, found, output)]
        assert (tuple(wanted.values()), found["row"]["_timestamp"]) in driven, (wanted, driven)


def iso(window: list[str]) -> list[str]:
    """Return the option with its time in ISO 8601."""
    return [window[0], show_instant(int(window[1])).replace(" ", "T")] if window else []


def replayed(build: Any, found: dict[str, Any], output: str) -> list[Any]:
    """Return what the test driver sends for nothing but the named records."""
    driver = TopologyTestDriver(build(), semantics=Semantics(stream_time_from="watermark"))
    sent = found["sent"]
    named = [*found["records"], *found["clock_records"], *([sent["record"]] if sent["record"] else [])]
    unique = {(one["topic"], one["partition"], one["offset"]): one for one in named}
    for one in sorted(unique.values(), key=lambda one: (one["epoch"], one["timestamp_ms"], one["offset"])):
        key, *value = one["record"].items()
        row = row_class(tuple(name for name, _ in value))(*(item for _, item in value))
        driver.pipe(one["topic"], key[1], row, one["timestamp_ms"])
    if sent["record"] is None and sent["watermark_ms"] is not None:
        driver.advance_watermark(sent["watermark_ms"])
    return driver.read(output)


def as_columns(record: Any) -> tuple[tuple[Any, ...], int]:
    """Return the columns of a record's key and value, and its timestamp."""
    key, value, timestamp, _ = record
    bounds = key.window[:2] if isinstance(key, Windowed) else ()
    own = key.key if isinstance(key, Windowed) else key
    values = (
        tuple(value) if isinstance(value, tuple) else tuple(value.values()) if isinstance(value, dict) else (value,)
    )
    return (own, *bounds, *values), timestamp
