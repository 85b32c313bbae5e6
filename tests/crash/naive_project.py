"""What the tables of a project must say after a history of commands. Only the partition of a key is computed by rewindow.

A command that succeeded is applied by its words, so that an advice which is followed literally counts like any other command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from rewindow.streams.serde.key_bytes import partition_of

HOUR = 3_600_000
SIZE, GRACE = 30 * 60_000, 5 * 60_000
PARTITIONS, HOLD_ABOVE = 2, 5_000
MAX_AHEAD = 24 * HOUR
MAIN = "main"


class Row(NamedTuple):
    """A record of the source, in the order in which a landing sorts its records."""

    got: int
    user: str
    t: int
    x: int


Total = tuple[str, int, int]
"""A row of the output: user, start of the window, sum."""
Landing = tuple[Row, ...]


@dataclass
class Taken:
    """A run: the landings that it took, its code, and whether somebody accepted its rows."""

    landings: list[Landing]
    code: int
    generation: int
    is_accepted: bool = False
    name: str = ""
    is_of_main: bool = False
    """Whether the run belongs to the branch from which this one starts. Its rows are in that branch's table only."""


@dataclass
class NaiveProject:
    """The decisions of a history. ``through``: the end of the last interval that was landed, if the feed has intervals."""

    is_hourly: bool
    files: dict[str, list[Row]] = field(default_factory=dict)
    landings: list[Landing] = field(default_factory=list)
    through: int | None = None
    generation: int = 1
    code: int = 1
    branches: dict[str, list[Taken]] = field(default_factory=lambda: {MAIN: []})

    def applied(self, words: Sequence[str], until: int | None) -> None:
        """Apply a command that succeeded. ``until``: the time up to which it landed; None without intervals."""
        options = {name: value for name, value in pairwise(words) if name.startswith("--")}
        branch = options.get("--branch", MAIN)
        match words[0], *words[2:]:
            case "land", *more:
                if "--new-generation" in more:
                    self.landings, self.through, self.generation = [], None, self.generation + 1
                self._land(until)
            case "run", *_:
                if "--land" in words:
                    self._land(until)
                self._take(branch, int(options.get("--through", len(self.landings))))
            case "backfill", *_:
                self._backfill(branch, int(options["--from"]))
            case "promote", name, *_ if name in self.branches:
                self.caught_up(name)
                self.branches[MAIN] = [replace(run, is_of_main=False) for run in self.branches.pop(name)]
            case "drop", _, name:
                self.branches.pop(name, None)
            case "rewind", *_:
                self.branches[branch] = self._before(branch, options["--to"])
            case "publish", *_ if "--run" in options:
                for run in self.branches[branch]:
                    run.is_accepted |= run.name == options["--run"]
            case "reset", *_:
                self.branches = {MAIN: []}

    def caught_up(self, branch: str) -> None:
        """Let a branch take the landings of main, as `promote` does before it looks whether a run is on hold."""
        self._take(branch, len(self.taken(MAIN)))

    def _land(self, until: int | None) -> None:
        landed = {row for landing in self.landings for row in landing}
        fresh = {row for rows in self.files.values() for row in rows if row.t <= row.got + MAX_AHEAD} - landed
        if until is None:
            self.landings += [tuple(sorted(fresh))] if fresh else []
            return
        by_hour: dict[int, list[Row]] = {}
        until = until // HOUR * HOUR
        for row in sorted(row for row in fresh if row.got < until):
            by_hour.setdefault(max(row.got // HOUR * HOUR, self.through or 0), []).append(row)
        if self.through is None or self.through < until:
            self.landings += [tuple(rows) for _, rows in sorted(by_hour.items())]
            self.through = max(by_hour) + HOUR if by_hour else self.through

    def taken(self, branch: str) -> list[Landing]:
        """Return the landings that a branch has taken."""
        return [landing for run in self.branches[branch] for landing in run.landings]

    def _take(self, branch: str, through: int) -> None:
        runs = self.branches.setdefault(branch, [])
        if fresh := self.landings[len(self.taken(branch)) : through]:
            runs.append(Taken(fresh, self.code, self.generation))

    def _backfill(self, branch: str, first: int) -> None:
        if branch not in self.branches:
            kept, before = [], 0
            for run in self.branches[MAIN]:
                before += len(run.landings)
                if before >= first or run.generation != self.generation:
                    break
                kept.append(replace(run, is_of_main=True))
            self.branches[branch] = kept
        self._take(branch, len(self.taken(MAIN)))

    def _before(self, branch: str, name: str) -> list[Taken]:
        names = [run.name for run in self.branches[branch]]
        return self.branches[branch][: names.index(name) + 1 if name != "0" else 0]

    def published(self, branch: str) -> list[Total]:
        """Return the rows that a reader of a branch sees: those before its first run on hold."""
        rows: list[Total] = []
        for run, added in zip(self.branches[branch], self._added(branch), strict=True):
            if not run.is_accepted and any(total > HOLD_ABOVE for _, _, total in added):
                break
            rows += [] if run.is_of_main else added
        return sorted(rows)

    def _added(self, branch: str) -> Iterator[list[Total]]:
        clocks, sums = [-1] * PARTITIONS, dict[tuple[int, str, int], int]()
        for run in self.branches[branch]:
            added: list[Total] = []
            for row in (row for landing in run.landings for row in landing):
                partition, start = partition_of(row.user, PARTITIONS), row.t // SIZE * SIZE
                clock = clocks[partition] = max(clocks[partition], row.t)
                if clock < start + SIZE + GRACE:
                    key = partition, row.user, start
                    sums[key] = sums.get(key, 0) + row.x * run.code
                closed = [key for key in sums if key[0] == partition and clock >= key[2] + SIZE + GRACE]
                added += [(*key[1:], sums.pop(key)) for key in closed]
            yield added
