"""Commands as a user calls them, on a small project, and everything that can be seen of the project after them.

The matrix kills the machines of the protocol. Here the command line itself runs, with its locks, heartbeats and messages.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import Bench, copy_of, make_template, without_spark
from tests.crash.forks import answer, preload

JOB, FEED, BRANCH = "counts", "activity", "trial"
NOISE = ("Traceback", "py4j", "panicked", "fault of rewindow", "bug in rewindow")
"""What no message may contain."""


@dataclass(frozen=True)
class Command:
    """The words of a command line, and the commands that prepare it."""

    words: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()


LAND, RUN = ("land", FEED), ("run", JOB)
BACKFILL = ("backfill", JOB, "--from", "2", "--branch", BRANCH)
COMMANDS = {
    "land": Command(LAND),
    "run": Command(RUN, (LAND,)),
    "run --land": Command((*RUN, "--land")),
    "run --final": Command((*RUN, "--final"), (LAND,)),
    "rewind": Command(("rewind", JOB, "--to", "main/1"), (LAND, RUN)),
    "backfill": Command(BACKFILL, (LAND, RUN)),
    "promote": Command(("promote", JOB, BRANCH), (LAND, RUN, BACKFILL)),
    "branch drop": Command(("branch", "drop", JOB, BRANCH), (LAND, RUN, BACKFILL)),
    "republish": Command(("republish", JOB, "--all"), (LAND, RUN)),
    "reset": Command(("reset", JOB, "--yes"), (LAND, RUN)),
    "gc": Command(("gc", JOB), (LAND, RUN)),
}


def call(root: str, words: tuple[str, ...]) -> dict[str, Any]:
    """Run a command line in this process. Return its exit code and what it printed."""
    with quiet() as (out, err), without_spark():
        done = Bench(Path(root)).run(*words)
    return {"code": done.code, "said": done.out + done.err + out.getvalue() + err.getvalue()}


@contextmanager
def quiet() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Catch what is printed, so that thousands of calls do not print."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        yield out, err


def seen(root: str) -> dict[str, Any]:
    """Return what can be seen of a project: the rows of every table of every open branch, the log, the quarantine."""
    bench = Bench(Path(root))
    tables = DeltaTables(str(bench.warehouse))
    state = tables.state(JOB)
    branches = {name: branch for name, branch in state.branches.items() if branch.standing.name == "OPEN"}
    return {
        "branches": {name: [branch.last_epoch, len(branch.runs)] for name, branch in branches.items()},
        "hashes": {name: dict(tables.hashes(JOB, name)) for name, branch in branches.items() if branch.runs},
        "log": bench.log_hash(),
        "quarantine": bench.quarantined(),
    }


def prepared(root: str, command: Command) -> str:
    """Create the project in which a command is called, and return its folder."""
    answer(partial(_prepare, root, command))
    return f"{root}/project"


def _prepare(root: str, command: Command) -> None:
    with quiet(), without_spark():
        bench = make_template(Path(root) / "project")
        for words in command.before:
            done = bench.run(*words)
            assert done.code == 0, done.err


def after(project: str, root: str, *calls: tuple[str, ...]) -> dict[str, Any]:
    """Return what is seen after clean calls in a copy of a project."""
    copy_of(Bench(Path(project)), Path(root))
    for words in calls:
        done = answer(partial(call, root, words))
        assert done["code"] == 0, done["said"]
    return answer(partial(seen, root))


def again(root: str, words: tuple[str, ...], expected: dict[str, Any]) -> str:
    """Call a command again, and compare everything right after it. Return ``ok``, or what is wrong."""
    done = answer(partial(call, root, words))
    if done["code"] != 0 or noisy(done["said"]):
        return f"wrong: the same command again ended with {done['code']}: {done['said'][-300:]}"
    return compare(answer(partial(seen, root)), expected)


def compare(found: dict[str, Any], expected: dict[str, Any]) -> str:
    """Return ``ok``, or the parts that differ."""
    different = [part for part in expected if found[part] != expected[part]]
    return f"wrong: other {', '.join(different)}: {[(found[p], expected[p]) for p in different]}" if different else "ok"


def noisy(said: str) -> bool:
    """Return whether a message is one that no user should get."""
    return any(noise in said for noise in NOISE)


def warm_up() -> None:
    """Import what commands import, so that children need not."""

    def work() -> None:
        with TemporaryDirectory(prefix="rewindow-crash-") as root:
            _prepare(root, COMMANDS["promote"])
            seen(f"{root}/project")

    preload(work)


def detached(work: Callable[[], Any]) -> Callable[[int], None]:
    """Return a child's work whose standard streams go nowhere, because it may die while it prints."""

    def run(mark: int) -> None:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        os.write(mark, json.dumps(work()).encode())

    return run
