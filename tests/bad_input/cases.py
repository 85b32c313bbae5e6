"""A case of bad input: what goes wrong, the command that meets it, what it says, and the check that nothing else happened."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bad_input.scene import Answer, Bench, copy_of, goes_on


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
    """An error, the command that meets it, the exit code, and parts of the message."""

    name: str
    command: str
    code: int
    says: str | tuple[str, ...]
    given: Callable[[Bench], object] = lambda _bench: None
    landed: bool = False
    """Whether new records are landed first, so that the run has something to do."""
    goes_on: bool = True
    """Whether the job gives the clean result once the error is undone."""
    refused: tuple[str, ...] = ()
    """If the command succeeds: the reasons in the quarantine."""


def check(case: Case, template: Bench, root: Path, clean: Mapping[str, str]) -> None:
    """Check that a case ends as expected and leaves the tables unchanged, and that the job continues afterwards."""
    bench = copy_of(template, root)
    before, decided = bench.files(), bench.decided()
    case.given(bench)
    broken = bench.files()
    answer = bench.run(*case.command.split())
    assert_clear(case, answer)
    if case.code == 0:
        assert tuple(bench.quarantined()) == case.refused
    else:
        _assert_as_before(broken, bench.files())
        _undo(bench, template.root, before, broken)
        assert bench.decided() == decided, "the failed command added ledger rows"
    if case.goes_on:
        goes_on(bench)
        assert bench.result() == clean


def assert_clear(case: Case, answer: Answer) -> None:
    """Check that an answer is one clear sentence with the fix and the documented exit code."""
    said = answer.out + answer.err
    assert answer.code == case.code, said
    for words in (case.says,) if isinstance(case.says, str) else case.says:
        assert words in said, said
    for noise in ("Traceback", "py4j", "\tat ", "bug in rewindow", "panicked"):
        assert noise not in said, said


def _assert_as_before(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Check that no file changed or disappeared, and that no public table got a commit after its first."""
    for name, digest in before.items():
        assert after.get(name) == digest, f"{name} was changed"
    for name in after.keys() - before.keys():
        path = Path(name)
        own = name.startswith(("warehouse/rewindow/runs", "warehouse/rewindow/landings", "warehouse/rewindow/journal"))
        is_commit = path.parent.name == "_delta_log" and not path.stem.startswith("0" * 20)
        assert own or not is_commit, f"{name} is a commit"


def _undo(bench: Bench, whole: Path, before: Mapping[str, str], broken: Mapping[str, str]) -> None:
    """Undo the changes of a case, but not those of the command."""
    for name in before.keys() | broken.keys():
        if before.get(name) == broken.get(name):
            continue
        file = bench.root / name
        if name in before:
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(whole / name, file)
        else:
            file.unlink(missing_ok=True)
    now = bench.files()
    assert not [name for name, digest in before.items() if now.get(name) != digest]
