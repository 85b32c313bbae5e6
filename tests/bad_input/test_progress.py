"""Progress and result of a command: log lines, progress bars and the summary."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rewindow.app.open_project import OpenProject
from rewindow.app.watch import watched
from rewindow.control.ledger_steps import Step
from rewindow.engine.worker.landing.source_types import UnsuitableError
from tests.bad_input.scene import Bench, copy_of
from tests.ingest.local_engine import HOUR, T0, LocalEngine

SPARK = OpenProject.__dict__["spark"]
"""The property, which `without_spark` replaces."""


def test_each_step_is_a_line_with_its_run(bench: Bench) -> None:
    landed = bench.run("land", "activity", "--log-format", "json")
    assert {"recover", "look", "write events", "decide"} <= {
        json.loads(line)["step"] for line in landed.err.splitlines()
    }
    answer = bench.run("run", "counts", "--log-format=json")
    lines = [json.loads(line) for line in answer.err.splitlines()]
    execute = next(line for line in lines if line.get("step") == "execute sub-topology 0")
    assert (execute["job"], execute["branch"], execute["run"]) == ("counts", "main", "main/3")
    assert (execute["sub_topology"], execute["records"], execute["level"]) == (0, 12, "info")
    assert [line["ledger_row"] for line in lines if line.get("step") == "commit"] == [execute["ledger_row"]]
    assert lines[-1]["event"] == "summary"
    assert lines[-1]["records"] == {"events": 12}


def test_a_run_has_a_summary_and_logs_nothing_by_default(bench: Bench) -> None:
    late = {"user": "ann", "t": T0, "got": T0 + 3 * HOUR, "x": 1}
    bench.rows("h3", [late, {**late, "user": None}])
    bench.done("land activity")
    answer = bench.run("run", "counts", "--json")
    summary = answer.values["summary"]
    assert answer.err == ""
    assert summary["records"] == {"events": 14}
    assert set(summary["rows"]) == {"totals"}
    assert summary["dropped"] == {"late": {"window-closed": 1}, "skipped": {"null-key": 1}}
    assert summary["commits"] >= 4
    assert summary["seconds"] > 0
    assert bench.json("run counts")["summary"] is None


def test_a_failure_is_logged(template: Bench) -> None:
    answer = template.run("head", "nobody", "--log-format", "json")
    line = json.loads(answer.err.splitlines()[0])
    assert (line["event"], line["exit_code"], line["level"]) == ("failed", 2, "error")
    assert line["code"] == "name-not-found"
    template.refuses("run counts --log-format xml", "log-format-unknown")


def test_a_terminal_shows_the_step_and_its_progress() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120)
    with watched(console, is_quiet=False) as watch:
        watch(Step("execute sub-topology 0", records=1_000_000))
        watch.share(0.5)
    assert "execute sub-topology 0, 1,000,000 records" in out.getvalue()
    out.truncate(0)
    with watched(Console(file=out), is_quiet=False) as watch:
        watch("plan")
    assert not out.getvalue().strip("\0"), "nothing is printed outside a terminal"


def test_a_step_without_a_known_number_of_records_has_a_bar_too() -> None:
    out = io.StringIO()
    with watched(Console(file=out, force_terminal=True, width=120), is_quiet=False) as watch:
        watch("write events")
        watch.share(0.5)
    assert "write events" in out.getvalue()
    assert "0:00:0" in out.getvalue()


def refused(*_: object) -> Any:
    """Say that Arrow cannot read a source."""
    raise UnsuitableError("it is another engine's")


@pytest.mark.parametrize("terminal", ["a terminal", ""])
def test_land_says_that_spark_is_starting_before_it_starts(
    terminal: str, template: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.StringIO()
    seen: list[str] = []
    project = OpenProject.open(copy_of(template, tmp_path / "project").root)
    monkeypatch.setattr(OpenProject, "spark", SPARK)
    monkeypatch.setattr("rewindow.app.open_project.open_session", lambda *_, **__: seen.append(out.getvalue()))
    with watched(Console(file=out, force_terminal=bool(terminal)), is_quiet=False) as watch:
        monkeypatch.setattr(
            "rewindow.engine.spark.spark_landing.SparkLandingEngine",
            lambda spark, project_root, on_share: spark() or LocalEngine(project_root),
        )
        monkeypatch.setattr("rewindow.engine.worker.landing.arrow_landing.open_source", refused)
        project.land("activity", on_step=watch)
    (before,) = seen
    assert "starting Spark" in before
    with watched(Console(file=out), is_quiet=True) as quiet:
        quiet.say("with --json")
    assert "with --json" not in out.getvalue()
