"""A case of bad input: what goes wrong, the command that meets it, the code of its error, and the check that nothing changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rewindow.tables.delta import handle
from tests.bad_input.scene import Bench

_OWN = ("warehouse/rewindow/runs", "warehouse/rewindow/landings", "warehouse/rewindow/journal")


def edited(
    path: str, old: str, new: str, prepare: Callable[[Bench], None] = lambda _bench: None
) -> Callable[[Bench], None]:
    """Return what prepares a project and then makes a slip in one of its files."""

    def given(bench: Bench) -> None:
        prepare(bench)
        bench.edit(path, old, new)

    return given


@dataclass(frozen=True)
class Case:
    """An error, the command that meets it, and its code with some of its facts. ``~`` is a space inside an argument."""

    name: str
    command: str
    code: str
    facts: Mapping[str, object] = field(default_factory=dict)
    given: Callable[[Bench], object] = lambda _bench: None


def check(case: Case, bench: Bench, whole: Collection[str]) -> None:
    """Check that a case is refused clearly and leaves the tables unchanged, and undo it.

    Cases share the project. ``whole`` are its files before the first one: what a failed attempt has left, the next may delete.
    """
    before, times, decided = contents(bench), _times(bench), bench.decided()
    case.given(bench)
    broken = contents(bench)
    try:
        ask(case, bench)
        _assert_as_before(broken, contents(bench), whole)
    finally:
        _restore(bench, before, broken, times)
    assert bench.decided() == decided, "the failed command added ledger rows"


def ask(case: Case, bench: Bench) -> None:
    """Check that the command of a case is refused clearly."""
    answer = bench.run(*(word.replace("~", " ") for word in case.command.split()))
    answer.refused(case.code, **case.facts)
    for noise in ("Traceback", "py4j", "\tat ", "bug in rewindow", "panicked"):
        assert noise not in answer.out + answer.err, answer


def contents(bench: Bench) -> dict[str, bytes]:
    """Return every file of the project with its bytes."""
    paths = (path for path in bench.root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(bench.root)): path.read_bytes() for path in paths}


def _assert_as_before(before: Mapping[str, bytes], after: Mapping[str, bytes], whole: Collection[str]) -> None:
    """Check that no file changed or disappeared, and that no public table got a commit after its first."""
    for name, data in before.items():
        if name in whole and not name.endswith("_last_checkpoint"):
            assert after.get(name) == data, f"{name} was changed"
    for name in after.keys() - before.keys():
        path = Path(name)
        is_commit = path.parent.name == "_delta_log" and not path.stem.startswith("0" * 20)
        assert name.startswith(_OWN) or not is_commit, f"{name} is a commit"


def _times(bench: Bench) -> dict[str, int]:
    """Return when each file of the project was written: cases tell new files by that."""
    return {str(path.relative_to(bench.root)): path.stat().st_mtime_ns for path in bench.root.rglob("*")}


def _restore(bench: Bench, before: Mapping[str, bytes], broken: Mapping[str, bytes], times: Mapping[str, int]) -> None:
    """Undo the changes of a case, but not those of the command."""
    for name in before.keys() | broken.keys():
        if before.get(name) != broken.get(name):
            file = bench.root / name
            if name in before:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(before[name])
                os.utime(file, ns=(times[name], times[name]))
            else:
                file.unlink(missing_ok=True)
    handle.cached.clear()
