"""`rewindow init` creates a project, and `rewindow test` plays its transcripts. `test_why.py` runs each example."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from rewindow.app.cli.entry import run_command
from rewindow.app.new_project import Example

NAMES = {
    "windows": ("orders", "daily_orders"),
    "sessions": ("clicks", "visits"),
    "processor": ("readings", "silent_sensors"),
    "join": ("shop", "sales"),
}
"""Of each example the feed and the job."""


pytestmark = pytest.mark.usefixtures("own_modules")


def call(*words: str) -> tuple[int, str]:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        code = run_command(list(words))
    return code, out.getvalue()


@pytest.mark.parametrize("example", NAMES)
def test_a_new_project_passes_its_own_test_and_check(tmp_path: Path, example: str) -> None:
    feed, job = NAMES[example]
    code, said = call("init", "new", "--example", example)
    assert code == 0, said
    assert f"rewindow land {feed}" in said
    os.chdir(tmp_path / "new")
    assert call("test") == (0, "1 of 1 transcripts passed, whole and cut into runs.\n")
    code, said = call("check", job)
    assert code == 0, said
    code, said = call("explain", job)
    assert code == 0, said


def test_every_example_is_tried() -> None:
    assert set(NAMES) == set(Example)


def test_init_says_what_it_made(tmp_path: Path) -> None:
    code, said = call("init", "new", "--json")
    assert code == 0
    made = json.loads(said)
    assert (made["feed"], made["job"], made["example"]) == ("orders", "daily_orders", "windows")
    assert sorted(made["files"]) == sorted(
        str(path.relative_to(tmp_path / "new")) for path in (tmp_path / "new").rglob("*") if path.is_file()
    )


def test_the_commands_that_init_names_work_where_it_was_called(tmp_path: Path) -> None:
    _, said = call("init", "my shop")
    script = said.partition("Next:")[2].replace("rewindow ", f"{sys.executable} -m rewindow ")
    subprocess.run(f"set -e\n{script}", shell=True, check=True, cwd=tmp_path)  # noqa: S602 - as a user pastes it


def test_init_again_is_done_and_never_overwrites(tmp_path: Path) -> None:
    assert call("init", "new")[0] == 0
    code, said = call("init", "new")
    assert (code, said.partition(".")[0]) == (0, f"All files are there already in {tmp_path / 'new'}")
    mine = tmp_path / "new/jobs/daily_orders.py"
    mine.write_text("mine")
    (tmp_path / "new/conf/jobs/daily_orders.yaml").unlink()
    code, said = call("init", "new")
    assert code == 2
    assert "another jobs/daily_orders.py" in said
    assert mine.read_text() == "mine"
    assert not (tmp_path / "new/conf/jobs/daily_orders.yaml").exists()


def test_a_failing_transcript_ends_with_1_and_names_the_step(tmp_path: Path) -> None:
    assert call("init")[0] == 0
    case = tmp_path / "tests/daily_orders.yaml"
    case.write_text(case.read_text().replace("amount: 4.0}, 23h]]", "amount: 5.0}, 23h]]"))
    code, said = call("test")
    assert code == 1
    assert "FAILED tests/daily_orders.yaml: a day is closed six hours after its end, step 5" in said
    assert said.count("FAILED") == 1
    assert "0 of 1 transcripts passed" in said
    code, said = call("test", "--json")
    assert code == 1
    assert [one["cut"] for one in json.loads(said)["failed"]] == [False, True]


def test_a_case_that_cannot_be_played_fails_with_its_file_and_the_others_are_played(tmp_path: Path) -> None:
    assert call("init")[0] == 0
    case = tmp_path / "tests/daily_orders.yaml"
    case.with_name("misspelt.yaml").write_text(case.read_text().replace("build_topology", "build_topologie"))
    case.with_name("unknown.yaml").write_text(case.read_text().replace("- expect:", "- expcet:"))
    case.with_name("twice.yaml").write_text(f"{case.read_text()}name: again\n")
    code, said = call("test")
    assert code == 1
    assert (
        "FAILED tests/misspelt.yaml: a day is closed six hours after its end: jobs.daily_orders has no function" in said
    )
    assert "FAILED tests/unknown.yaml: a day is closed six hours after its end: {'expcet'" in said
    assert "FAILED tests/twice.yaml: " in said
    assert "duplicate key 'name'" in said
    assert "1 of 4 transcripts passed" in said


@pytest.mark.parametrize(
    ("words", "says"), [(("test",), "[transcripts-missing]"), (("test", "x.yaml"), "[transcript-file-missing]")]
)
def test_a_project_without_transcripts_is_told_so(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    assert call("init")[0] == 0
    (tmp_path / "tests/daily_orders.yaml").unlink()
    code, said = call(*words)
    assert code == 78
    assert says in said
