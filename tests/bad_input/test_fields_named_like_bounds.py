"""A field of a value may be called `window_start`: it is shown as it is, and only the bounds of the key are times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import rewindow
from rewindow.app.times import time_columns
from rewindow.control.ledger_steps import drive, write_snapshot
from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import Bench, copy_of, project_of, topology, without_spark
from tests.bad_input.test_why_windows import DAILY, DAY
from tests.ingest.local_engine import HOUR

SECONDS = 1_357_000_000
STEPS = """\
class Started(NamedTuple):
    window_start: int
    n: int


class Ended(NamedTuple):
    window_end: int
    n: int


def start(key, value, seen) -> Started:
    return Started(seen.window_start + 1, seen.n + 1)


def end(key, value, seen) -> Ended:
    return Ended(seen.window_end + 1, seen.n + 1)
"""
MODULE = topology(
    """
grouped = builder.stream("orders").group_by_key()
hours = grouped.windowed_by(TimeWindows.of("1h", grace="0s"))
ended = hours.aggregate(lambda: Ended(1_357_000_000, 0), end, store="windows")
ended.suppress(until_window_closes(), name="closed").to_stream().to("windowed")
grouped.aggregate(lambda: Started(1_357_000_000, 0), start, store="totals").to_stream().to("plain")
""",
    before=f"from typing import NamedTuple\n\n\n{STEPS}",
)


def begin(root: Path, module: str = MODULE) -> Bench:
    return project_of(root, DAILY, module, "windowed", "plain", more="on_code_change: accept\n")


def add(bench: Bench, name: str, *rows: tuple[str, str]) -> None:
    bench.write(f"data/{name}.csv", "user,t\n" + "".join(f"{user},{DAY}T{time}:00Z\n" for user, time in rows))
    bench.done("land orders", "run counts")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = begin(tmp_path_factory.mktemp("bounds") / "project")
    with without_spark():
        add(bench, "one", ("ann", "16:10"), ("bob", "16:15"))
        add(bench, "two", ("ann", "18:20"))
        yield bench


def test_an_open_window_outlives_a_snapshot(tmp_path: Path) -> None:
    bench = begin(tmp_path / "project", MODULE.replace("Ended", "Begun").replace("window_end", "window_start"))
    with without_spark():
        add(bench, "one", ("ann", "16:10"), ("bob", "16:15"))
        add(bench, "two", ("ann", "18:20"))
        tables = DeltaTables(str(bench.warehouse))
        assert drive(write_snapshot("counts", tables.state("counts").branch("main").head, tables, 1))
        add(bench, "three", ("ann", "18:40"), ("bob", "20:00"))
        (table,) = bench.json("head shop.windowed")["tables"]
    assert sorted((row["user"], row["n"]) for row in table["rows"]) == [("ann", 1), ("ann", 2), ("bob", 1)]


@pytest.mark.parametrize(
    ("keys", "times"),
    [
        ((), set()),
        (("user",), set()),
        (("user", "window_start"), set()),
        (("user", "window_start", "window_end"), {"window_start", "window_end"}),
        (("user", "key_window_start", "window_end"), {"key_window_start", "window_end"}),
        (
            ("user", "key_window_start", "key_window_end", "window_start", "window_end"),
            {"key_window_start", "key_window_end", "window_start", "window_end"},
        ),
        (("user", "window_start", "window_end", "_record_time", "_number"), {"window_start", "window_end"}),
    ],
)
def test_the_key_tells_which_columns_are_times(keys: tuple[str, ...], times: set[str]) -> None:
    assert time_columns(keys) == {"_timestamp", *times}


def test_head_state_and_why_show_the_field_as_it_is_and_the_bounds_as_times(template: Bench) -> None:
    windowed, total = (template.done(f"head shop.{name}").out for name in ("windowed", "plain"))
    assert f"{DAY} 16:00:00" in windowed
    shown = [windowed, total]
    for store in ("totals", "windows"):
        shown.append(template.done(f"state show counts {store}").out)
        shown.append(template.run(*f"state diff counts {store} main/1 main/2".split()).out)
    shown.append(template.done(f"why shop.windowed ann --window {DAY}T16:10:00").out)
    for out in shown:
        assert str(SECONDS + 1) in out
        assert "1970" not in out
    (told,) = template.json("head shop.windowed")["tables"]
    assert told["keys"] == ["user", "window_start", "key_window_end"]
    missing = template.json(f"why shop.windowed ann --missing --window {DAY}T18:30:00")
    assert (missing["why"], missing["closes_at_ms"] - missing["window_start_ms"]) == ("open", HOUR)


def test_rows_of_the_api_have_the_field_as_it_is_stored(template: Bench) -> None:
    project = rewindow.Project.load(template.root)
    for rows in (project.output("plain"), project.state("counts", "totals")):
        assert SECONDS + 1 in rows.to_arrow()["window_start"].to_pylist()
    first = project.output("windowed").to_arrow().to_pylist()[0]
    assert (first["window_end"], first["n"]) == (SECONDS + 1, 1)
    day = datetime.fromisoformat(DAY).replace(tzinfo=UTC)
    assert (first["window_start"], first["key_window_end"]) == (day.replace(hour=16), day.replace(hour=17))
    stored = project.state("counts", "windows").to_arrow().to_pylist()
    assert {(row["key_window_end"].hour, row["window_end"]) for row in stored} == {(19, SECONDS + 1)}


def test_diff_and_report_show_the_field_as_it_is(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    bench.edit("bench_job.py", "Ended(seen.window_end + 1, seen.n + 1)", "Ended(seen.window_end + 1, seen.n + 2)")
    bench.done("backfill counts --from 1 --branch fix")
    out = bench.run(*["diff", "counts", "main", "fix"]).out
    assert f"window_end={SECONDS + 1}, n=1" in out
    assert f"window_start={DAY} 16:00:00Z, key_window_end={DAY} 17:00:00Z" in out
    bench.done(f"report counts --branch fix --diff main --out {bench.root / 'r.html'}")
    page = (bench.root / "r.html").read_text(encoding="utf-8")
    assert f"window_end={SECONDS + 1}" in page
    assert "1970" not in page
    (window,) = bench.json("report counts")["open_windows"]["shown"]
    start_ms, end_ms = window["window"]
    assert (end_ms - start_ms, window["closes_at_ms"]) == (HOUR, end_ms)
