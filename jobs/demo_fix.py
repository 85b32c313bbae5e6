"""The last part of `make demo`: a job with a bug, the fix on a branch, what it changes, and its promotion.

Everything is done as a user does it: by editing the job's file and calling the commands in the project's folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

JOB, BRANCH = "airport_delays", "fixed"
MODEL = "hourly_departures"
"""The job with the right bound, of which the job with the bug is a copy."""
RIGHT, WRONG = '.where("dep_delay is not null")', '.where("dep_delay >= 0")'


def plant_bug(root: Path) -> None:
    """Write a job into the project that loses the flights that left early."""
    code = _code(root, MODEL).read_text()
    if RIGHT not in code:
        message = f"jobs/{MODEL}.py has no {RIGHT}, which the demo makes wrong"
        raise LookupError(message)
    _code(root, JOB).write_text(code.replace(RIGHT, WRONG))
    conf = (root / f"conf/jobs/{MODEL}.yaml").read_text()
    (root / f"conf/jobs/{JOB}.yaml").write_text(conf.replace(MODEL, JOB))


def show_fix(root: Path, say: Callable[[str], None]) -> str:
    """Publish the wrong rows, fix the bug on a branch, compare, promote and report; return the hash of the published rows."""
    say(f"\nA bug: jobs/{JOB}.py is {MODEL}.py with a wrong bound. It loses the flights that left early.")
    say(f"    {WRONG}")
    _call(root, say, "run", JOB)
    code = _code(root, JOB)
    code.write_text(code.read_text().replace(WRONG, RIGHT))
    say("\nThe fix, replayed from the first landing on a branch of its own:")
    say(f"    {RIGHT}")
    _call(root, say, "backfill", JOB, "--from", "1", "--branch", BRANCH)
    _call(root, say, "diff", JOB, "main", BRANCH, "--samples", "2", code=1)  # 1: there are differences
    _call(root, say, "promote", JOB, BRANCH)
    _call(root, say, "report", JOB)
    shown = json.loads(_output(root, "show", JOB, "--hashes", "--json"))
    return next(str(table["content"]) for table in shown["tables"] if table["table"].startswith("output/"))


def _code(root: Path, job: str) -> Path:
    return root / f"jobs/{job}.py"


def _call(root: Path, say: Callable[[str], None], *words: str, code: int = 0) -> None:
    say(f"\n$ rewindow {' '.join(words)}")
    for line in _output(root, *words, code=code).splitlines():
        if " seconds. " not in line:  # how long it took differs each time
            say(line)


def _output(root: Path, *words: str, code: int = 0) -> str:
    """Return what a command prints. Raises `CalledProcessError` for another exit code than expected."""
    command = [sys.executable, "-m", "rewindow", *words]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603 - words of this module
    if done.returncode != code:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout)
    return done.stdout


def status_of(root: Path) -> int:
    """Return the exit code of `rewindow status`; print what it found to stderr if that is not 0."""
    command = [sys.executable, "-m", "rewindow", "status"]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603 - words of this module
    if done.returncode:
        sys.stderr.write(done.stdout)
    return done.returncode
