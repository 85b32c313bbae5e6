"""Pairs of operations that run at once on one warehouse, without a lock, and the state that they must reach."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rewindow.control.plan.job_state import Standing
from rewindow.control.plan.spec import MAIN
from rewindow.errors import RewindowError
from rewindow.tables.delta.warehouse import DeltaTables
from tests.crash import scene
from tests.crash.forks import answer
from tests.crash.judge import View, verdict, view
from tests.crash.matrix import Mutate, in_a_line, nothing
from tests.crash.operations import (
    OPERATIONS,
    Operation,
    branched,
    ravaged,
    small_files_read,
    some_runs,
    unpublished,
)
from tests.crash.scene import JOB, Steps
from tests.crash.sites import Sites, traced

EXPECTED_ERRORS = ("NotNowError", "UsageError", "CheckpointError", "ConfigError")
"""The errors that the slower process may get: try again later, or the other one has already done it."""


@dataclass(frozen=True)
class Pair:
    """Two operations on one warehouse. After both, runs complete `main`, which must then equal that of clean calls.

    ``told``: a part of another error message that is accepted, besides `EXPECTED_ERRORS`.
    """

    name: str
    prepare: Callable[[str, int], None]
    one: str
    other: str
    told: str = ""


RAVAGED = "altered outside rewindow"
"""The message of a command before the repair."""
FILE_GONE = "No such file or directory"
"""The message of a run whose store files `gc` deletes while it reads them.

The `gc` of the matrix takes every run for dead and retains nothing. A real `gc` keeps the files of a live run.
"""

FALSE_ALARM = "an older copy of the ledger"
"""A part of an error that only a restored backup may cause, never another process."""


def _run_unpublished(warehouse: str) -> Steps:
    for step in scene.running(DeltaTables(warehouse), MAIN, 2):
        if step.startswith("publish"):
            return
        yield step


CALLS = {**OPERATIONS, "run-unpublished": Operation("run-unpublished", some_runs([1]), _run_unpublished)}
"""The operations, and a run that dies right after its COMMIT row."""

PAIRS = {
    pair.name: pair
    for pair in (
        Pair("run | run", some_runs([1, 2]), "run", "run"),
        Pair("run | run-unpublished", some_runs([1]), "run", "run-unpublished"),
        Pair("run | rewind", some_runs([1, 2]), "run", "rewind"),
        Pair("rewind | run", some_runs([1, 2, 3]), "rewind", "run"),
        Pair("rewind | rewind", some_runs([1, 2, 3]), "rewind", "rewind"),
        Pair("backfill | run", some_runs([1, 2, 3]), "backfill", "run"),
        Pair("backfill | backfill", some_runs([1, 2, 3]), "backfill", "backfill"),
        Pair("run | promote", branched, "run", "promote"),
        Pair("promote | run", branched, "promote", "run"),
        Pair("promote | rewind", branched, "promote", "rewind"),
        Pair("rewind | promote", branched, "rewind", "promote"),
        Pair("promote | promote", branched, "promote", "promote"),
        Pair("publish | publish", unpublished, "publish", "publish"),
        Pair("republish | run", some_runs([1, 2]), "republish", "run"),
        Pair("run | rewind-republish", some_runs([1, 2]), "run", "rewind-republish"),
        Pair("first-run | first-run", some_runs([]), "first-run", "first-run"),
        Pair("land | land", scene.write_source, "land", "land"),
        Pair("gc-feed | land", small_files_read, "gc-feed", "land-last"),
        Pair("land | gc-feed", small_files_read, "land-last", "gc-feed"),
        Pair("gc-feed | gc-feed", small_files_read, "gc-feed", "gc-feed"),
        Pair("gc-feed | run", small_files_read, "gc-feed", "run"),
        Pair("run | gc-feed", small_files_read, "run", "gc-feed"),
        Pair("gc | run", some_runs([1, 2]), "gc", "run"),
        Pair("run | gc", some_runs([1, 2]), "run", "gc", FILE_GONE),
        Pair("gc | rewind", some_runs([1, 2, 3]), "gc", "rewind"),
        Pair("rewind | gc", some_runs([1, 2, 3]), "rewind", "gc"),
        Pair("gc | promote", branched, "gc", "promote"),
        Pair("run | reset", some_runs([1, 2]), "run", "reset"),
        Pair("reset | run", branched, "reset", "run"),
        Pair("reset | reset", branched, "reset", "reset"),
        Pair("fix | run", ravaged, "fix", "run", RAVAGED),
        Pair("fix | rewind", ravaged, "fix", "rewind", RAVAGED),
    )
}


@dataclass(frozen=True)
class Meeting:
    """A warehouse before a pair, the sites of the first operation's clean call, and the expected state of `main`."""

    folder: str
    sites: list[str]
    expected: View


def meeting(root: str, pair: Pair, seed: int) -> Meeting:
    """Prepare a pair and make both calls, one after the other, to get the expected state."""
    before, after = f"{root}/before", f"{root}/after"
    answer(partial(pair.prepare, before, seed))
    shutil.copytree(before, after)
    names = answer(lambda: traced(after, CALLS[pair.one].act(after), fine=True))
    answer(partial(call, after, pair.other))
    answer(partial(finish, after))
    expected = of_main(answer(partial(view, after)))
    shutil.rmtree(after)
    return Meeting(before, names, expected)


def call(warehouse: str, operation: str, sites: Sites | None = None) -> str:
    """Make one call. Return ``done``, or the class and message of its error."""
    try:
        machine = CALLS[operation].act(warehouse)
        if sites is not None:
            sites.drive(machine)
        for _ in machine:
            pass
    except RewindowError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def finish(warehouse: str) -> None:
    """Publish every branch, and run `main` to its end."""
    if not (Path(warehouse) / "rewindow" / "runs").exists():
        if (Path(warehouse) / "raw").exists():
            call(warehouse, "land")
        return
    tables = DeltaTables(warehouse)
    for branch in (MAIN, *tables.state(JOB).branches):
        for _ in tables.publish(JOB, tables.state(JOB), branch):
            pass
    if tables.state(JOB).branch(MAIN).standing is Standing.OPEN:
        for _ in scene.run_all(tables):
            pass


def of_main(says: View) -> View:
    """Remove what depends on the order of two operations: the progress of other branches."""
    kept = {name: rows for name, rows in says["rows"].items() if "__" not in name}
    parts: dict[str, Any] = {part: {MAIN: says[part].get(MAIN)} for part in ("hashes", "branches") if part in says}
    return {**says, **parts, "rows": kept}


def compared(warehouse: str, said: list[str], expected: View, mutate: Mutate = nothing, *, told: str = "") -> str:
    """Finish, and compare `main` with the expected state. ``said``: the results of the calls; ``told``: see `Pair`."""
    for text in said:
        is_expected = text.startswith(EXPECTED_ERRORS) and FALSE_ALARM not in text
        if text != "done" and not is_expected and not (told and told in text):
            return f"wrong: a call ended with {text[-400:]}"
    try:
        answer(partial(_finishing, warehouse, mutate))
        return verdict(expected, of_main(answer(partial(view, warehouse))))
    except RuntimeError as error:
        return in_a_line(str(error))


def _finishing(warehouse: str, mutate: Mutate) -> None:
    mutate()
    finish(warehouse)
