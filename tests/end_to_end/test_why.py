"""`rewindow why` on the projects that `init` makes: its records alone give each row in the test driver."""

from __future__ import annotations

import importlib
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from rewindow.app.cli.entry import run_command
from rewindow.contracts.instants import as_argument
from rewindow.streams.record import Windowed, row_class
from rewindow.streams.settings import Semantics
from rewindow.testing import TopologyTestDriver
from tests.bad_input.scene import without_spark

EXAMPLES = {
    "windows": ("orders", "daily_orders", "daily-orders", "customer", "customer", 5),
    "sessions": ("clicks", "visits", "visits", "user", "user", 4),
    "processor": ("readings", "silent_sensors", "silent-sensors", "sensor", "key", 3),
    "join": ("shop", "sales", "sales", "order_id", "order_id", 4),
}
"""Of each example the feed, the job, the output, the key columns of the logs and of the output, and the number of rows."""


pytestmark = pytest.mark.usefixtures("own_modules")


def call(*words: str) -> dict[str, Any]:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        code = run_command([*words, "--json"])
    assert code == 0, out.getvalue()
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_records_that_why_names_give_each_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    feed, job, output, log_key, key, count = EXAMPLES[example]
    call("init", "--example", example)
    monkeypatch.syspath_prepend(str(tmp_path))
    with without_spark():
        call("land", feed)
        call("run", job)
    build = importlib.import_module(f"jobs.{job}").build_topology
    rows = call("head", job, "-n", "100")["tables"][0]["rows"]
    assert len(rows) == count
    for row in rows:
        window = ["--window", str(row["window_start"])] if "window_start" in row else []
        found = call("why", job, str(row[key]), *iso(window))
        assert found["is_reproduced"], found
        assert found["is_exact"], found
        wanted = {name: value for name, value in found["row"].items() if name == "_timestamp" or name[0] != "_"}
        driven = [as_columns(record, key) for record in replayed(build, found, output, log_key)]
        assert wanted in driven, (wanted, driven)


def iso(window: list[str]) -> list[str]:
    """Return the option with its time in ISO 8601."""
    return [window[0], as_argument(int(window[1]))] if window else []


def replayed(build: Any, found: dict[str, Any], output: str, log_key: str) -> list[Any]:
    """Return what the test driver sends for nothing but the named records."""
    driver = TopologyTestDriver(build(), semantics=Semantics(stream_time_from="watermark"))
    sent = found["sent"]
    named = [*found["records"], *found["clock_records"], *([sent["record"]] if sent["record"] else [])]
    unique = {(one["topic"], one["partition"], one["offset"]): one for one in named}
    for one in sorted(unique.values(), key=lambda one: (one["epoch"], one["timestamp_ms"], one["offset"])):
        value = {name: item for name, item in one["record"].items() if name != log_key}
        row = row_class(tuple(value))(*value.values())
        driver.pipe(one["topic"], one["record"][log_key], row, one["timestamp_ms"])
    if sent["record"] is None and sent["watermark_ms"] is not None:
        driver.advance_watermark(sent["watermark_ms"])
    return driver.read(output)


def as_columns(record: Any, key: str) -> dict[str, Any]:
    """Return a record as the row of a table."""
    own, bounds = record.key, {}
    if isinstance(own, Windowed):
        own, (start, end, _) = own
        bounds = {"window_start": start, "window_end": end}
    value = record.value._asdict() if isinstance(record.value, tuple) else {"value": record.value}
    return {key: own, **bounds, **value, "_timestamp": record.timestamp}
