"""Every interleaving of a few processes, exhaustively: the production `fold` and decisions over a ledger of commits.

Each look, each append, each answer, each stage and each publication is a step of its own; a process may die before any,
an append may be on its way while its sender has given up. What is production code: `fold_row`, `plan_run`,
`check_is_pending`, `make_commit`, `decide_branch`, `decide_rewind`, `decide_promote`, `decide_snapshot`, `decide_forget`,
`net`. What is modelled: that a commit lands at the version after the one that was seen, or not at all. In every state: the
ledger is legal, what was committed was staged once, each table holds what the publications up to its ordinal come to, and
the state that an open lineage goes on from was not forgotten.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from rewindow.delta.publish import net
from rewindow.errors import InvariantError, RewindowError
from rewindow.plan import fold as folding
from rewindow.plan import keeping, planner, travel
from rewindow.plan.lineage import JobState, LedgerRow, Standing
from rewindow.plan.planner import UpToDate
from rewindow.plan.spec import MAIN, Attempt, JournalFile, RunRequest, RunSpec, TargetTotal
from tests.crash.forks import side_by_side
from tests.crash.rewriting import Rewrite
from tests.crash.settings import Figures, Settings
from tests.plan.ledgers import BINDING, a_feed, commit_of

BRANCH = "b"
FOR_EVER = 2**60
Row = int
Ledger = tuple[Row, ...]
Content = tuple[int, ...]
State = tuple[Any, ...]
"""Ledger, staged attempts with how often, tables as (name, ordinal, runs), processes, budget, appends on their way."""


@dataclass(frozen=True)
class Bounds:
    """How far the search goes."""

    processes: int = 2
    epochs: int = 2
    runs: int = 2
    rewinds: int = 0
    branches: int = 0
    promotes: int = 0
    crashes: int = 1
    late: int = 0
    janitors: int = 0
    attempts: int = 2


@dataclass
class Model:
    """The states that can be reached within bounds; ``faults`` names what is broken on purpose."""

    bounds: Bounds
    faults: frozenset[str] = frozenset()
    rows: list[LedgerRow] = field(default_factory=list)
    _numbers: dict[str, Row] = field(default_factory=dict)
    _states: dict[Ledger, JobState] = field(default_factory=lambda: {(): JobState()})
    _decided: dict[Any, Any] = field(default_factory=dict)

    def initial(self) -> State:
        b = self.bounds
        budget = (b.runs, b.rewinds, b.branches, b.promotes, b.crashes, b.late, b.janitors)
        return (), (), (), tuple(("idle", 0) for _ in range(b.processes)), budget, ()

    def explore(self, limit: int, seconds: float) -> dict[str, Any]:
        """Visit every state; say how many there are and what is wrong with the first bad one."""
        begun, first = time.monotonic(), self.initial()
        seen, queue = {first}, deque([first])
        while queue:
            state = queue.popleft()
            try:
                self.check(state)
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

    def fold(self, ledger: Ledger) -> JobState:
        """Fold a ledger; its beginnings are known."""
        if ledger not in self._states:
            row = replace(self.rows[ledger[-1]], seq=len(ledger))
            self._states[ledger] = folding.fold_row(self.fold(ledger[:-1]), row)
        return self._states[ledger]

    def check(self, state: State) -> None:
        ledger, staged, tables, *_ = state
        job = self.fold(ledger)
        counts = dict(staged)
        for run in job.committed:
            assert counts.get(run.commit.attempt) == 1, (
                f"{run.spec.name} was staged {counts.get(run.commit.attempt)} times"
            )
        for one in job.lineages.values():
            head = one.head.spec.run if one.head else None
            assert one.standing is not Standing.OPEN or job.has_state(head), f"the state of {one.name} was forgotten"
        for name, ordinal, content in tables:
            due = net(job.lineage(name).publications[:ordinal]).adds
            assert content == tuple(sorted(run.spec.run for run in due)), f"{name} at {ordinal} has the runs {content}"
            lineage = job.lineage(name)
            if ordinal == len(lineage.publications) and lineage.standing is Standing.OPEN:
                own = tuple(sorted(run.spec.run for run in lineage.own_runs))
                assert content == own, f"{name} has the runs {content}, its chain {own}"

    def check_end(self, state: State) -> None:
        """See that nothing is stuck: who comes now can publish all and run to the end."""
        ledger, _, tables, _, budget, _ = state
        job = self.fold(ledger)
        main = job.lineage(MAIN)
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
            for step in self._steps(state, index, process):
                after, change = step
                made = {"ledger": ledger, "staged": staged, "tables": tables, "budget": budget, "late": late, **change}
                done = (*processes[:index], after, *processes[index + 1 :])
                yield made["ledger"], made["staged"], made["tables"], done, made["budget"], made["late"]

    def _steps(
        self, state: State, me: int, process: tuple[Any, ...]
    ) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        ledger, staged, tables, _, budget, late = state
        what, attempts, *rest = process
        if what != "idle" and budget[4]:
            yield ("idle", attempts), {"budget": _less(budget, 4)}
        match what:
            case "idle":
                yield from self._commands(state, me, attempts)
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
                mine = RunSpec.from_json(self.rows[plan].body).attempt.id
                counts = dict(staged)
                counts[mine] = counts.get(mine, 0) + 1 if "stages again" in self.faults else 1
                yield ("commit", attempts, plan), {"staged": tuple(sorted(counts.items()))}
                if "stages again" in self.faults and counts[mine] == 1:
                    yield process, {"staged": tuple(sorted(counts.items()))}
            case "commit":
                (plan,) = rest
                row = self._commit_row(ledger, plan)
                if row is None:
                    yield ("idle", attempts), {}
                else:
                    spec = RunSpec.from_json(self.rows[plan].body)
                    sending = ("append", attempts, row, len(ledger), ("publish", spec.lineage, plan))
                    if "publishes before its COMMIT" in self.faults:
                        ordinal, content = _table(tables, spec.lineage)
                        yield sending, {"tables": ((spec.lineage, ordinal + 1, (*content, spec.run)),)}
                    yield sending, {}
            case "publish" | "put":
                yield from self._publishing(state, process)

    def _publishing(self, state: State, process: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        ledger, _, tables, *_ = state
        what, attempts, lineage, *rest = process
        ordinal, content = _table(tables, lineage)
        if what == "publish":
            due = self.fold(ledger).lineage(lineage).publications
            if ordinal >= len(due):
                yield ("idle", attempts), {}
                return
            upto = len(due) if "publishes the newest" in self.faults else ordinal + 1
            adds, removes = (
                tuple(run.spec.run for run in runs) for runs in (due[upto - 1].adds, due[upto - 1].removes)
            )
            yield ("put", attempts, lineage, ordinal, upto, adds, removes), {}
            return
        seen, upto, adds, removes = rest
        change = {}
        if ordinal == seen or "puts blindly" in self.faults:
            kept = [run for run in content if run not in removes]
            others = [table for table in tables if table[0] != lineage]
            change = {"tables": tuple(sorted([*others, (lineage, upto, tuple(sorted([*kept, *adds])))]))}
        yield ("publish", attempts, lineage, None), change

    def _commands(self, state: State, me: int, attempts: int) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        ledger, _, tables, _, budget, _ = state
        job = self.fold(ledger)
        open_branch = BRANCH in job.lineages and job.lineage(BRANCH).standing is Standing.OPEN
        for lineage in job.lineages:
            if _table(tables, lineage)[0] < len(job.lineage(lineage).publications):
                yield ("publish", attempts, lineage, None), {}
        if budget[0] and attempts < self.bounds.attempts:
            for lineage in (MAIN, BRANCH) if open_branch else (MAIN,):
                row = self._plan_row(ledger, lineage, f"{me}-{attempts}")
                if row is not None:
                    sending = ("append", attempts + 1, row, len(ledger), ("stage", row))
                    yield sending, {"budget": _less(budget, 0)}
        for place, kind in ((1, "rewind"), (2, "branch"), (3, "promote"), (6, "snapshot"), (6, "forget")):
            if budget[place]:
                row = self._travel_row(ledger, kind)
                if row is not None:
                    then = ("publish", MAIN, None) if kind in ("rewind", "promote") else ("idle",)
                    yield ("append", attempts, row, len(ledger), then), {"budget": _less(budget, place)}

    def _landed(self, ledger: Ledger, row: Row, seen: int) -> Ledger:
        if row in ledger:
            return ledger
        if len(ledger) == seen or "appends blindly" in self.faults:
            return (*ledger, row)
        return ledger

    def _plan_row(self, ledger: Ledger, lineage: str, attempt: str) -> Row | None:
        key = ("plan", ledger, lineage, attempt)
        if key not in self._decided:
            state = self.fold(ledger)
            through = min(state.lineage(lineage).last_epoch + 1, self.bounds.epochs)
            request = RunRequest(lineage=lineage, through_landing=through)
            feed, nobody = a_feed(self.bounds.epochs), Attempt(attempt)
            try:
                spec = planner.plan_run(state, feed, request, BINDING, nobody, lambda _: False)
            except RewindowError:
                spec = UpToDate("refused")
            row = (
                None if isinstance(spec, UpToDate) else self._number(LedgerRow(spec.run, folding.PLAN, spec.as_json()))
            )
            self._decided[key] = row
        return self._decided[key]  # type: ignore[no-any-return]

    def _commit_row(self, ledger: Ledger, plan: Row) -> Row | None:
        key = ("commit", ledger, plan)
        if key not in self._decided:
            state, spec = self.fold(ledger), RunSpec.from_json(self.rows[plan].body)
            if state.find_run(spec.run) is not None and state.find_run(spec.run).spec.attempt == spec.attempt:  # type: ignore[union-attr]
                self._decided[key] = None
                return None
            try:
                if "does not look before its COMMIT" not in self.faults:
                    planner.check_is_pending(state, spec)
            except RewindowError:
                self._decided[key] = None
            else:
                commit = commit_of(state, spec, {"output/totals": TargetTotal(1, 1, 1, "0" * 32)})
                self._decided[key] = self._number(LedgerRow(state.rows + 1, folding.COMMIT, commit.as_json()))
        return self._decided[key]  # type: ignore[no-any-return]

    def _travel_row(self, ledger: Ledger, kind: str) -> Row | None:
        key = (kind, ledger)
        if key not in self._decided:
            try:
                travelled = self._travelled(self.fold(ledger), kind)
                self._decided[key] = None if travelled is None else self._number(travelled)
            except RewindowError:
                self._decided[key] = None
        return self._decided[key]  # type: ignore[no-any-return]

    def _travelled(self, state: JobState, kind: str) -> LedgerRow | None:
        main = state.lineage(MAIN)
        if kind == "forget":
            return keeping.decide_forget(state, FOR_EVER)
        if kind == "snapshot":
            heads = keeping.due_snapshots(state, every=1)
            journal, name = JournalFile("snapshot", 1, "0" * 32), f"snapshot-{state.rows}"
            return keeping.decide_snapshot(state, heads[0], name, journal, {}) if heads else None
        if kind == "rewind":
            return travel.decide_rewind(state, MAIN, main.runs[-2].spec.name if len(main.runs) > 1 else "0")
        if kind == "branch":
            return travel.decide_branch(state, BRANCH, MAIN, main.runs[0] if main.runs else None)
        return travel.decide_promote(state, BRANCH, MAIN, BINDING)

    def _number(self, row: LedgerRow) -> Row:
        text = f"{row.seq} {row.kind} {row.body}"
        if text not in self._numbers:
            self._numbers[text] = len(self.rows)
            self.rows.append(row)
        return self._numbers[text]


def _less(budget: tuple[int, ...], place: int) -> tuple[int, ...]:
    return (*budget[:place], budget[place] - 1, *budget[place + 1 :])


def _table(tables: Sequence[tuple[str, int, Content]], name: str) -> tuple[int, Content]:
    return next(((ordinal, content) for table, ordinal, content in tables if table == name), (0, ()))


BOUNDS = {
    "two runners, two crashes, a late append": Bounds(runs=4, crashes=2, late=1),
    "a rewind beside runs": Bounds(runs=4, rewinds=1, crashes=1),
    "two rewinds and a late append": Bounds(runs=3, rewinds=2, crashes=1, late=1),
    "a branch, promoted beside runs": Bounds(runs=4, branches=1, promotes=1, crashes=0),
    "a branch, promoted and rewound": Bounds(runs=3, branches=1, promotes=1, rewinds=1, crashes=0),
    "a janitor beside runs": Bounds(runs=4, janitors=2, crashes=1),
    "a janitor, a rewind and a late append": Bounds(runs=3, rewinds=1, janitors=2, late=1),
    "a janitor, a branch and a promotion": Bounds(runs=3, branches=1, promotes=1, janitors=2, crashes=0),
    "three runners": Bounds(processes=3, runs=3, crashes=1, attempts=1),
}

FAULTS = {
    "appends blindly": Bounds(runs=3),
    "presses through": Bounds(runs=3),
    "publishes before its COMMIT": Bounds(runs=2),
    "stages again": Bounds(runs=2),
    "does not look before its COMMIT": Bounds(runs=3),
    "publishes the newest": Bounds(runs=3, rewinds=2),
    "puts blindly": Bounds(runs=2),
}

REWRITTEN = {
    "a rewind forgets to fence": (
        Bounds(runs=4, rewinds=1, attempts=3),
        Rewrite("plan.fold_travel:_fold_rewind", "pending=None,", ""),
    ),
    "a fenced plan counts as pending": (
        Bounds(runs=3),
        Rewrite("plan.lineage:JobState.is_pending", "return pending is not None and (", "return pending is None or ("),
    ),
    "what a lineage stands on is forgotten": (
        Bounds(processes=1, runs=3, janitors=2, crashes=0, attempts=4),
        Rewrite("plan.keeping:decide_forget", "and run.spec.run not in kept and", "and"),
    ),
    "a branch begins where the state was forgotten": (
        Bounds(processes=1, runs=3, janitors=2, branches=1, crashes=0, attempts=4),
        Rewrite("plan.travel:decide_branch", "check_has_state(state, at.spec.run if at else None)", "pass"),
    ),
    "a promotion forgets what it takes out": (
        Bounds(processes=1, runs=4, branches=1, promotes=1, crashes=0, attempts=4),
        Rewrite("plan.fold_travel:_fold_promote", ", removes=into.runs[common:]", ""),
    ),
}
"""Faults in the production fold itself."""


def suite(settings: Settings) -> Figures:
    """Explore all bounds, and see that each fault is found; ``quick``: two runs and no crash."""
    figures = Figures("model")
    seconds = 5.0 if settings.quick else 120.0
    chosen = {"two runs": Bounds(crashes=0)} if settings.quick else BOUNDS
    states, exhaustive, survivors = 0, [], []
    jobs = [partial(_explored, name, bounds, (), seconds) for name, bounds in chosen.items()]
    jobs += [partial(_explored, fault, bounds, (fault,), seconds) for fault, bounds in FAULTS.items()]
    jobs += [partial(_explored, fault, bounds, (), seconds, rewrite) for fault, (bounds, rewrite) in REWRITTEN.items()]
    faults = [*FAULTS, *REWRITTEN]
    for said in side_by_side(jobs, settings.at_once):
        if "error" in said:
            raise RuntimeError(said["error"])
        settings.say(f"model: {said}")
        if said["name"] in faults:
            survivors += [] if said["wrong"] else [said["name"]]
            continue
        states += said["states"]
        exhaustive += [said["name"]] if said.get("exhaustive") else []
        figures.count(f"wrong: {said['wrong']}" if said["wrong"] else "ok", said["name"])
    for name in survivors:
        figures.count("wrong: the model does not see it", name)
    killed = {"killed": len(faults) - len(survivors), "of": len(faults)}
    figures.more = {"states": states, "exhaustive": len(exhaustive), "of": len(chosen), "faults": killed}
    return figures


def _explored(
    name: str, bounds: Bounds, faults: Sequence[str], seconds: float, rewrite: Rewrite | None = None
) -> dict[str, Any]:
    if rewrite is not None:
        rewrite.apply()
    found = Model(bounds, frozenset(faults)).explore(10_000_000, seconds)
    return {"name": name, "bounds": {key: value for key, value in asdict(bounds).items() if value}, **found}
