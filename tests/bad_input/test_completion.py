"""What a shell completes: the names of jobs, feeds, targets, branches and stores, and never an error."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from rewindow.app.cli.entry import run_command
from tests.bad_input.scene import JOB, TARGET, Bench

CODE = "import sys; sys.argv = ['rewindow']; from rewindow.__main__ import main; main()"


def completed(line: str, folder: Path) -> list[str]:
    """Return what bash offers for the last word of a line."""
    words, out, err = line.split(" "), io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(out), redirect_stderr(err):
        patched.chdir(folder)
        patched.setattr("sys.argv", ["rewindow"])
        patched.setenv("COMP_WORDS", line)
        patched.setenv("COMP_CWORD", str(len(words) - 1))
        patched.setenv("_REWINDOW_COMPLETE", "complete_bash")
        run_command([])
    assert err.getvalue() == "", line
    return out.getvalue().split()


@pytest.fixture(scope="module")
def shop(template: Bench) -> Bench:
    template.write("conf/jobs/later.yaml", JOB.replace("job: counts", "job: later").replace("alerts.", "later."))
    template.write("conf/targets/prod.yaml", TARGET.replace("local", "prod"))
    template.write("conf/feeds/other.yaml", "this: [is no feed\n")
    template.write("bench_job.py", (template.root / "bench_job.py").read_text() + "\nprint('imported')\n")
    template.done("backfill counts --from 1 --branch fix")
    return template


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("rewindow run ", ["counts", "later"]),
        ("rewindow land ", ["activity", "other"]),
        ("rewindow gc ", ["activity", "counts", "later", "other"]),
        ("rewindow head c", ["counts"]),
        ("rewindow head a", ["alerts.totals"]),
        ("rewindow ls --target ", ["local", "prod"]),
        ("rewindow run counts --branch ", ["fix", "main"]),
        ("rewindow promote counts f", ["fix"]),
        ("rewindow run nobody --branch ", ["main"]),
        ("rewindow state show counts ", ["closed", "sums"]),
        ("rewindow schema ", ["feed", "job", "target"]),
    ],
)
def test_bash_completes_names(shop: Bench, line: str, names: list[str]) -> None:
    assert completed(line, shop.root) == names


def test_names_are_those_of_the_project_in_the_line(shop: Bench, tmp_path: Path) -> None:
    assert completed(f"rewindow run --project {shop.root} ", tmp_path) == ["counts", "later"]
    assert completed("rewindow run ", shop.root / "conf" / "jobs") == ["counts", "later"]


@pytest.mark.parametrize(
    "line",
    [
        "rewindow run ",
        "rewindow run x --branch ",
        "rewindow state show x ",
        "rewindow ls --target ",
    ],
)
def test_nothing_is_printed_where_there_is_no_project(tmp_path: Path, line: str) -> None:
    assert completed(line, tmp_path) in ([], ["main"])


def test_a_broken_target_has_no_branches(shop: Bench, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write("conf/jobs/counts.yaml", JOB)
    bench.write("conf/targets/local.yaml", "target: [\n")
    assert completed("rewindow run counts --branch ", tmp_path) == ["main"]
    assert completed("rewindow state show counts ", tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(("option", "shell"), [("--show-completion", "zsh"), ("--install-completion", "bash")])
def test_the_script_of_a_shell_is_printed_or_installed(
    option: str, shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # then the options take a shell's name
    code = "import sys; from rewindow.app.cli.entry import run_command; sys.exit(run_command(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, option, shell],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert shell in done.stdout or "_REWINDOW_COMPLETE" in done.stdout


@pytest.mark.slow
def test_completing_starts_no_spark_and_reads_no_code(shop: Bench) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", CODE],
        cwd=shop.root,
        env={**os.environ, "COMP_WORDS": "rewindow run counts --branch ", "COMP_CWORD": "4"}
        | {"_REWINDOW_COMPLETE": "complete_bash", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=False,
    )
    shown = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert (done.stdout.split(), shown) == (["fix", "main"], [])
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert loaded & {"pyspark", "py4j", "bench_job"} == set()


def test_a_name_that_could_steer_the_terminal_is_not_offered(shop: Bench) -> None:
    file = shop.root / "conf" / "jobs" / "x\x1b[2J\u202e.yaml"
    file.write_text("")
    assert completed("rewindow run ", shop.root) == completed("rewindow show ", shop.root) == ["counts", "later"]
    file.unlink()
