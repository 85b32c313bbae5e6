"""A command that reads tables while another one takes runs back: it reads again, and blames nobody."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from rewindow.app.branches import JobBranches
from rewindow.app.open_project import OpenProject
from rewindow.tables.delta.table_rows import read_rows
from tests.bad_input.chain import reads_totals
from tests.bad_input.scene import Bench, copy_of, goes_on


@pytest.fixture
def own(template: Bench, tmp_path: Path) -> Bench:
    return copy_of(template, tmp_path / "project")


def rewinding_once(bench: Bench, to: str, when: str, monkeypatch: pytest.MonkeyPatch, *, first: bool) -> None:
    """Let the next call of a function rewind main, before the call (``first``) or after it."""
    module, _, name = when.rpartition(".")
    original: Callable[..., Any] = getattr(import_module(module), name)

    def rewinding(*args: Any, **options: Any) -> Any:
        monkeypatch.undo()
        branches = JobBranches(OpenProject.open(bench.root), "counts")
        if first:
            branches.rewind("main", to)
            return original(*args, **options)
        found = original(*args, **options)
        branches.rewind("main", to)
        return found

    monkeypatch.setattr(when, rewinding)


def test_a_landing_during_a_rewind_is_not_told_that_somebody_altered_the_output(
    own: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads_totals(own)
    own.done("land totals")
    goes_on(own)
    log = f"{own.warehouse}/logs/totals/totals"
    before = read_rows(log).num_rows
    rewinding_once(own, "main/2", "rewindow.tables.delta.source_table.new_epochs", monkeypatch, first=False)
    own.done("land totals")
    assert read_rows(log).num_rows == before


def test_a_comparison_during_a_rewind_is_that_after_it(own: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    own.done("backfill counts --from 1 --branch same")
    rewinding_once(own, "main/1", "rewindow.tables.delta.diff.compare_tables", monkeypatch, first=True)
    own.done("diff counts main same")
