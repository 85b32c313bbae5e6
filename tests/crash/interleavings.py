"""A model checker: every interleaving of a few processes, with the production `fold` and decisions.

Each read, append, answer, staging and publication is a separate step. A process may die before any step, and an append may
land after its sender has given up. Production code: `fold_row`, `plan_run`, `check_is_pending`, `make_commit`,
`decide_branch`, `decide_rewind`, `decide_promote`, `decide_accept`, `decide_snapshot`, `decide_forget`, `net`. Modelled: a
commit lands at the version after the one that was read, or not at all. In every state, the ledger is legal, each committed
attempt was staged once, each run resumed from the one before it in its branch, each table has the runs of its publications up to
its ordinal, no run on hold is published, and the state from which an open branch continues exists.

The identity of a process does not matter, so states that differ only by a permutation of processes count as one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rewindow.control.plan.job_state import Standing
from rewindow.control.plan.spec import MAIN
from rewindow.errors import InvariantError
from rewindow.tables.shared.publications import net
from tests.crash.decisions import BRANCH, Decisions, Ledger, Row

Content = tuple[int, ...]
Process = tuple[Any, ...]
"""The process's next step, the number of its attempts, and the arguments of the step."""
State = tuple[Any, ...]
"""Ledger, staged attempts with counts, tables as (name, ordinal, runs), processes, budget, pending appends."""


@dataclass(frozen=True)
class Bounds:
    """The limits of the search."""

    processes: int = 2
    epochs: int = 2
    runs: int = 2
    rewinds: int = 0
    branches: int = 0
    promotes: int = 0
    crashes: int = 1
    late: int = 0
    janitors: int = 0
    holds: int = 0
    accepts: int = 0
    attempts: int = 2


@dataclass
class Model:
    """The states that can be reached within bounds. ``faults`` names what is deliberately broken."""

    bounds: Bounds
    faults: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        looks = "does not look before its COMMIT" not in self.faults
        self._decisions = Decisions(self.bounds.epochs, looks)
        self._ranks: dict[Process, int] = {}

    def initial(self) -> State:
        b = self.bounds
        budget = (b.runs, b.rewinds, b.branches, b.promotes, b.crashes, b.late, b.janitors, b.holds, b.accepts)
        return (), (), (), tuple(("idle", 0) for _ in range(b.processes)), budget, ()

    def explore(self, limit: int, seconds: float) -> dict[str, Any]:
        """Visit every state. Return the number of states, and what is wrong with the first bad one."""
        begun, first = time.monotonic(), self.initial()
        seen, queue, checked = {first}, deque([first]), set()
        while queue:
            state = queue.popleft()
            try:
                if state[:3] not in checked:  # the checks do not depend on the processes' next steps
                    self.check(*state[:3])
                    checked.add(state[:3])
                following = list(self.following(state))
                if not following:
                    self.check_end(state)
            except (AssertionError, InvariantError) as error:
                return {"states": len(seen), "wrong": f"{type(error).__name__}: {error}"[:300]}
            for after in following:
                if after not in seen:
                    seen.add(after)
                    queue.append(after)
            if len(seen) > limit or time.monotonic() - begun > seconds:
                return {"states": len(seen), "wrong": None, "exhaustive": False}
        return {"states": len(seen), "wrong": None, "exhaustive": True}

    def check(self, ledger: Ledger, staged: tuple[Any, ...], tables: tuple[Any, ...]) -> None:
        job = self._decisions.fold(ledger)
        counts = dict(staged)
        for run in job.committed:
            assert counts.get(run.commit.attempt) == 1, (
                f"{run.spec.name} was staged {counts.get(run.commit.attempt)} times"
            )
        for one in job.branches.values():
            parents = [None, *(run.spec.run for run in one.runs)]
            assert [run.spec.parent for run in one.runs] == parents[:-1], (
                f"a run of {one.name} resumed from another one"
            )
            head = one.head.spec.run if one.head else None
            assert one.standing is not Standing.OPEN or job.has_state(head), f"the state of {one.name} was forgotten"
            held = [run.spec.name for run in job.holding([run for change in one.publications for run in change.adds])]
            assert not held, f"{held} are on hold and published to {one.name}"
        for name, ordinal, content in tables:
            due = net(job.branch(name).publications[:ordinal]).adds
            assert content == tuple(sorted(run.spec.run for run in due)), f"{name} at {ordinal} has the runs {content}"
            branch = job.branch(name)
            if ordinal == len(branch.publications) and branch.standing is Standing.OPEN:
                own = tuple(sorted(run.spec.run for run in branch.published_runs[branch.inherited :]))
                assert content == own, f"{name} has the runs {content}, its chain {own}"

    def check_end(self, state: State) -> None:
        """Check that nothing is stuck: if runs are left and none is pending, `main` is complete and published."""
        ledger, _, tables, _, budget, _ = state
        job = self._decisions.fold(ledger)
        main = job.branch(MAIN)
        if not budget[0] or main.pending is not None:
            return
        assert main.last_epoch == self.bounds.epochs, f"main is stuck at {main.last_epoch}"
        at = {name: ordinal for name, ordinal, _ in tables}
        assert at.get(MAIN, 0) == len(main.publications), "main is not published"

    def following(self, state: State) -> Iterator[State]:
        ledger, staged, tables, processes, budget, late = state
        for sent in late:
            rest = tuple(one for one in late if one is not sent)
            yield self._landed(ledger, sent[0], sent[1]), staged, tables, processes, budget, rest
        for index, process in enumerate(processes):
            for step in self._steps(state, process):
                after, change = step
                made = {"ledger": ledger, "staged": staged, "tables": tables, "budget": budget, "late": late, **change}
                done = sorted((*processes[:index], after, *processes[index + 1 :]), key=self._rank)
                yield made["ledger"], made["staged"], made["tables"], tuple(done), made["budget"], made["late"]

    def _rank(self, process: Process) -> int:
        """Return a sort key: the number of a process state in order of first use."""
        return self._ranks.setdefault(process, len(self._ranks))

    def _steps(self, state: State, process: Process) -> Iterator[tuple[Process, dict[str, Any]]]:
        ledger, staged, tables, _, budget, late = state
        what, attempts, *rest = process
        if what != "idle" and budget[4]:
            yield ("idle", attempts), {"budget": _less(budget, 4)}
        match what:
            case "idle":
                yield from self._commands(state, attempts)
            case "append":
                row, seen, then = rest
                asking = ("answer", attempts, row, seen, then)
                yield asking, {"ledger": self._landed(ledger, row, seen)}
                if budget[5]:
                    yield asking, {"late": (*late, (row, seen)), "budget": _less(budget, 5)}
            case "answer":
                row, seen, then = rest
                if row in ledger:
                    yield (then[0], attempts, *then[1:]), {}
                elif len(ledger) == seen:
                    yield ("append", attempts, row, seen, then), {}
                elif "presses through" in self.faults:
                    yield ("append", attempts, row, len(ledger), then), {}
                else:
                    yield (
                        ("idle", attempts)
                        if then[0] != "publish" or then[2] is None
                        else ("commit", attempts, then[2]),
                        {},
                    )
            case "stage":
                (plan,) = rest
                mine = self._decisions.spec(plan).attempt.id
                counts = dict(staged)
                counts[mine] = counts.get(mine, 0) + 1 if "stages again" in self.faults else 1
                yield ("commit", attempts, plan), {"staged": tuple(sorted(counts.items()))}
                if "stages again" in self.faults and counts[mine] == 1:
                    yield process, {"staged": tuple(sorted(counts.items()))}
            case "commit":
                (plan,) = rest
                row = self._decisions.commit(ledger, plan)
                if row is None:
                    yield ("idle", attempts), {}
                else:
                    if budget[7] and (held := self._decisions.commit(ledger, plan, holds=True)) is not None:
                        then = ("publish", self._decisions.spec(plan).branch, plan)
                        yield ("append", attempts, held, len(ledger), then), {"budget": _less(budget, 7)}
                    spec = self._decisions.spec(plan)
                    sending = ("append", attempts, row, len(ledger), ("publish", spec.branch, plan))
                    if "publishes before its COMMIT" in self.faults:
                        ordinal, content = _table(tables, spec.branch)
                        yield sending, {"tables": ((spec.branch, ordinal + 1, (*content, spec.run)),)}
                    yield sending, {}
            case "publish" | "put":
                yield from self._publishing(state, process)

    def _publishing(self, state: State, process: Process) -> Iterator[tuple[Process, dict[str, Any]]]:
        ledger, _, tables, *_ = state
        what, attempts, branch, *rest = process
        ordinal, content = _table(tables, branch)
        if what == "publish":
            due = self._decisions.fold(ledger).branch(branch).publications
            if ordinal >= len(due):
                yield ("idle", attempts), {}
                return
            upto = len(due) if "publishes the newest" in self.faults else ordinal + 1
            adds, removes = (
                tuple(run.spec.run for run in runs) for runs in (due[upto - 1].adds, due[upto - 1].removes)
            )
            yield ("put", attempts, branch, ordinal, upto, adds, removes), {}
            return
        seen, upto, adds, removes = rest
        change = {}
        if ordinal == seen or "puts blindly" in self.faults:
            kept = [run for run in content if run not in removes]
            others = [table for table in tables if table[0] != branch]
            change = {"tables": tuple(sorted([*others, (branch, upto, tuple(sorted([*kept, *adds])))]))}
        yield ("publish", attempts, branch, None), change

    def _commands(self, state: State, attempts: int) -> Iterator[tuple[Process, dict[str, Any]]]:
        ledger, _, tables, _, budget, _ = state
        job = self._decisions.fold(ledger)
        open_branch = BRANCH in job.branches and job.branch(BRANCH).standing is Standing.OPEN
        for branch in job.branches:
            if _table(tables, branch)[0] < len(job.branch(branch).publications):
                yield ("publish", attempts, branch, None), {}
        if budget[0] and attempts < self.bounds.attempts:
            for branch in (MAIN, BRANCH) if open_branch else (MAIN,):
                row = self._decisions.plan(ledger, branch, str(budget[0]))
                if row is not None:
                    sending = ("append", attempts + 1, row, len(ledger), ("stage", row))
                    yield sending, {"budget": _less(budget, 0)}
        for index, kind in (
            (1, "rewind"),
            (2, "branch"),
            (3, "promote"),
            (6, "snapshot"),
            (6, "forget"),
            (8, "accept"),
        ):
            if budget[index]:
                row = self._decisions.branching(ledger, kind)
                if row is not None:
                    then = ("publish", MAIN, None) if kind in ("rewind", "promote", "accept") else ("idle",)
                    yield ("append", attempts, row, len(ledger), then), {"budget": _less(budget, index)}

    def _landed(self, ledger: Ledger, row: Row, seen: int) -> Ledger:
        if row in ledger:
            return ledger
        if len(ledger) == seen or "appends blindly" in self.faults:
            return (*ledger, row)
        return ledger


def _less(budget: tuple[int, ...], index: int) -> tuple[int, ...]:
    return (*budget[:index], budget[index] - 1, *budget[index + 1 :])


def _table(tables: Sequence[tuple[str, int, Content]], name: str) -> tuple[int, Content]:
    return next(((ordinal, content) for table, ordinal, content in tables if table == name), (0, ()))
