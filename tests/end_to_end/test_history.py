"""Branch operations from the command line, on Spark and Delta: output, exit codes and the resulting tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.json as pa_json
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyarrow import csv
from pyspark.sql import SparkSession

from rewindow.app.cli.entry import run_command
from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import Attempt, RunRequest
from rewindow.control.run import steps
from tests.conftest import copy_project
from tests.end_to_end.flights import write_sources

pytestmark = pytest.mark.spark

JOB = "quiet_carriers"


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project in which three months are landed and replayed, one month per run."""
    root = copy_project(tmp_path_factory.mktemp("history"))
    write_sources(root)
    assert run_command(["land", "flights", "--project", str(root)]) == 0
    for landing in ("1", "2", "3"):
        assert run_command(["run", JOB, "--through", landing, "--project", str(root)]) == 0
    return root


def test_history_is_rewound_replayed_on_a_branch_compared_and_promoted(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*arguments: str, code: int = 0) -> dict[str, Any]:
        capsys.readouterr()
        assert run_command([*arguments, "--project", str(root), "--json"]) == code
        said: dict[str, Any] = json.loads(capsys.readouterr().out)
        return said

    def hashes() -> dict[str, str]:
        return OpenProject.open(root).tables.hashes(JOB, "main")

    before = hashes()
    assert call("verify", JOB, "2", "3") == {"main/2": {}, "main/3": {}}
    made = call("backfill", JOB, "--from", "2013-02-10", "--to", "3", "--branch", "fix")
    assert (made["stands_on"], made["from_epoch"], made["runs"][0]["run"]) == ("main/1", 2, "fix/2")
    assert hashes() == before
    compared = call("diff", JOB, "main", "fix")
    assert all(not one["different"] and one["equal"] for one in compared.values())
    assert call("promote", JOB, "fix")["at"] == "fix/2"
    assert hashes() == before
    assert call("rewind", JOB, "--to", "1")["rewound"] == ["fix/2"]
    assert hashes() != before
    assert call("run", JOB)["epochs"] == [2, 3]
    assert hashes() == before
    standing = {one["branch"]: one["standing"] for one in call("branch", "list", JOB)["branches"]}
    assert standing == {"main": "open", "fix": "promoted"}


def shown_commands(page: str) -> list[list[str]]:
    """Return the commands that a page of the site shows, without `rewindow`."""
    text = (Path(__file__).parents[2] / page).read_text()
    return [line.removeprefix("$ rewindow ").split() for line in text.splitlines() if line.startswith("$ rewindow ")]


def test_the_commands_on_the_page_about_backfills(root: Path) -> None:
    commands = shown_commands("docs/guides/backfill.md")
    assert len(commands) == 7
    for command in commands:
        renamed = ["shown" if word == "fix" else word for word in command]
        assert run_command([*renamed, "--project", str(root)]) == 0, command


def test_drift_is_reported_and_repaired(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = ["--project", str(root)]

    def said() -> str:
        both = capsys.readouterr()
        return both.out + both.err

    before = OpenProject.open(root).tables.hashes(JOB, "main")
    tables = OpenProject.open(root).tables
    (first, *_) = tables.state(JOB).branch("main").runs
    folder = root / "warehouse" / first.spec.binding.tables["output/quiet-carriers"].path
    DeltaTable(folder).delete("_epoch = 1")
    for file in folder.glob(f"{first.commit.attempt}-*.parquet"):
        file.unlink()
    said()
    for command in ("show", "run"):
        assert run_command([command, JOB, *here]) == 74
        assert f"rewindow republish {JOB}" in said()
    assert run_command(["republish", JOB, *here, "--output", "nothing"]) == 2
    for command in (*shown_commands("docs/guides/failures.md"), *shown_commands("docs/guides/gc.md")):
        assert run_command([*command, *here]) == 0
    words = said()
    assert f"Run {first.spec.name} of {JOB} was replayed and gave the same rows." in words
    assert "Nothing to resume" in words
    assert OpenProject.open(root).tables.hashes(JOB, "main") == before
    assert run_command(["republish", JOB, *here]) == 0
    assert "are intact" in said()


def test_gc_collects_garbage(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = ["--project", str(root), "--json"]
    before = OpenProject.open(root).tables.hashes(JOB, "main")
    capsys.readouterr()
    for more in (["--dry-run"], []):
        assert run_command(["gc", JOB, "--keep", "30d", *more, *here]) == 0
        said = json.loads(capsys.readouterr().out)
        assert (said[JOB]["snapshots"], said[JOB]["forgotten"]) == ([], 0)
    assert run_command(["gc", *here]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len([one for one in said.values() if "snapshots" in one]) == 4
    assert set(said["flights"]) == {"merged", "into", "deleted"}
    assert run_command(["gc", "nothing", *here]) == 2
    assert json.loads(capsys.readouterr().out)["code"] == "job-or-feed-unknown"
    both = root / "conf" / "jobs" / "flights.yaml"
    both.write_text((both.parent / f"{JOB}.yaml").read_text())
    assert run_command(["gc", "flights", *here]) == 2
    assert "--kind" in "".join(capsys.readouterr())
    both.unlink()
    assert run_command(["gc", "flights", "--kind", "feed", "--dry-run", *here]) == 0
    assert run_command(["gc", JOB, "--keep", "soon", *here]) == 2
    assert OpenProject.open(root).tables.hashes(JOB, "main") == before


def test_stores_can_be_queried(root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    here = ["--project", str(root), "--json"]

    def call(*arguments: str, code: int = 0) -> dict[str, Any]:
        capsys.readouterr()
        assert run_command(["state", *arguments, *here]) == code, arguments
        said: dict[str, Any] = json.loads(capsys.readouterr().out)
        return said

    stores = {one["store"]: one for one in call("list", JOB)["stores"]}
    assert set(stores) == {"closed-carrier-hours", "departures-per-carrier"}
    store = "departures-per-carrier"
    assert stores[store]["entries"] > 0
    assert stores[store]["rows"] >= stores[store]["entries"]
    shown = call("show", JOB, store, "--limit", "2")
    assert (len(shown["entries"]), shown["count"]) == (2, stores[store]["entries"])
    one = shown["entries"][0]
    column = OpenProject.open(root).tables.state(JOB).branch("main").runs[-1].spec.binding.keys[store][0]
    same = call("show", JOB, store, "--key", str(one[column]))
    assert one in same["entries"]
    assert call("show", JOB, store, "--key", f"{column}={one[column]}") == same
    runs = [run.spec.name for run in OpenProject.open(root).tables.state(JOB).branch("main").runs]
    assert call("diff", JOB, store, runs[-1], runs[-1])["count"] == 0
    assert call("diff", JOB, store, runs[0], runs[-1], code=1)["changes"]
    for suffix, read in (("parquet", pq.read_table), ("csv", csv.read_csv), ("json", pa_json.read_json)):
        file = tmp_path / f"store.{suffix}"
        assert call("export", JOB, store, "--to", str(file))["rows"] == stores[store]["entries"]
        assert read(file).num_rows == stores[store]["entries"]
        assert run_command(["state", "export", JOB, store, "--to", str(file), *here]) == 2
    assert run_command(["state", "show", JOB, "nothing", *here]) == 2
    assert run_command(["state", "export", JOB, store, "--to", str(tmp_path / "x.xls"), *here]) == 2
    assert run_command(["state", "list", JOB, *here[:2]]) == 0


def test_a_dead_run_is_resumed_as_planned(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = ["--project", str(root), "--json"]
    project = OpenProject.open(root)
    job = project.bind(JOB, "killed")
    request = RunRequest(branch="killed", through_landing=2)
    nobody = Attempt("died")
    for step in steps(job, request, nobody, project.engine, project.tables, lambda _attempt: False):
        if step == "commit":
            break
    capsys.readouterr()
    assert run_command(["resume", JOB, "--branch", "killed", *here]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["resumed"], found["attempt"], found["run"], found["epochs"]) == (
        "killed/1",
        "died",
        "killed/1",
        [1, 2],
    )
    assert run_command(["resume", JOB, "--branch", "killed", *here]) == 0
    assert json.loads(capsys.readouterr().out)["resumed"] is None


def test_a_backfill_that_differs_ends_with_1_and_shows_keys(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = ["--project", str(root)]
    assert run_command(["backfill", JOB, "--from", "0", "--to", "2", "--branch", "short", *here]) == 0
    conf = root / "conf" / "jobs" / f"{JOB}.yaml"
    as_it_was = conf.read_text()
    conf.write_text(f"{as_it_was}\nsemantics: {{stream_time_from: watermark}}\n")
    try:
        assert run_command(["run", JOB, "--branch", "other", "--through", "2", *here]) == 0
    finally:
        conf.write_text(as_it_was)
    capsys.readouterr()
    assert run_command(["diff", JOB, "short", "other", *here]) == 1
    said = capsys.readouterr().out
    assert "only in short" in said
    assert "carrier" in said


def test_impossible_requests_are_refused_with_the_fix(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, code, named in (
        (["rewind", JOB, "--to", "main/99"], 2, "choose one"),
        (["promote", JOB, "nobody"], 2, "no branch 'nobody'"),
        (["branch", "drop", JOB, "main"], 2, "'main' is the published branch and cannot be dropped"),
        (["diff", JOB, "main", "nobody"], 2, "no runs on branch 'nobody'"),
        (["backfill", "nobody", "--from", "1"], 78, "nobody"),
        (["backfill", JOB, "--from", "1", "--branch", "main"], 2, "use another --branch"),
    ):
        capsys.readouterr()
        assert run_command([*arguments, "--project", str(root)]) == code, arguments
        said = capsys.readouterr().err
        assert named in said
        assert "Traceback" not in said
