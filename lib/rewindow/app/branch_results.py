"""What `backfill` and `diff` return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewindow.control.health.job_health import Hold
from rewindow.control.plan.planner import UpToDate
from rewindow.control.run import RunReport
from rewindow.tables.shared.diff import TableDiff


@dataclass(frozen=True, slots=True)
class Backfilled:
    """Result of a backfill: its branch, the branch's parent run, its first epoch, and the results of its runs.

    ``replaced`` names earlier runs of the branch, which executed other code, ``continues`` the last one that it kept.
    ``other_keys`` names the outputs that cannot be compared with those of `main`, because their keys have other columns.
    """

    branch: str
    stands_on: str | None
    first_epoch: int
    replaced: Sequence[str]
    continues: str | None
    results: Sequence[RunReport | UpToDate]
    other_keys: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """Result of a comparison of two branches: the last run that they share, the ``epochs`` after it, and each output's diff.

    ``has_finals``: the rows of the final runs were compared, too, because both branches end with one after the same epoch;
    otherwise those of ``left_out`` were not. ``on_hold`` has, for each branch, the run on hold from which on its rows are not
    published, and so not compared.
    """

    first: str
    second: str
    shared: str | None
    epochs: range
    diffs: Mapping[str, TableDiff]
    on_hold: Sequence[Hold] = ()
    has_finals: bool = False
    left_out: Sequence[str] = ()

    @property
    def extent(self) -> str:
        """What was compared, as a part of a sentence; empty if nothing was."""
        epochs = [f"epochs {self.epochs[0]} to {self.epochs[-1]}"] if self.epochs else []
        return " and ".join([*epochs, *(["the final runs"] if self.has_finals else [])])

    @property
    def is_held(self) -> bool:
        """Whether nothing was compared because a run is on hold, so that nobody knows whether the outputs differ."""
        return bool(self.on_hold) and not self.extent

    @property
    def differs(self) -> bool:
        """Whether an output differs."""
        return not self.are_equal and not self.is_held

    @property
    def are_equal(self) -> bool:
        """Whether no output differs; false if a run on hold left nothing to compare."""
        return not self.is_held and all(table_diff.is_none for table_diff in self.diffs.values())
