"""A stored state and the rows after it give what all rows give, wherever it was stored, and looks at few runs."""

from __future__ import annotations

from dataclasses import fields, replace
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from rewindow.control.plan import stored_runs
from rewindow.control.plan.job_fold import COMMIT, PLAN, RESET, decide_reset, fold, fold_row
from rewindow.control.plan.job_state import JobState, LedgerRow, shared_runs
from rewindow.control.plan.planner import plan_run
from rewindow.control.plan.repair_decisions import decide_republish, decide_restage
from rewindow.control.plan.retention import dead_attempts, decide_forget, decide_snapshot
from rewindow.control.plan.spec import Commit, JournalFile, RunRequest, RunSpec, TargetTotal, chain_hash
from rewindow.control.plan.stored_runs import attempts_of, bindings_of, run_facts, run_of_request, sizes_of
from rewindow.control.plan.stored_state import LAYOUT, state_lines, state_of
from rewindow.errors import InvariantError
from rewindow.tables.shared.publications import Due, due_attempts, due_rows, due_tables, net, published_attempts
from tests.control.ledgers import BINDING, a_feed, an_attempt, plan_row, run_rows
from tests.control.test_ledger_histories import actions, history

upkeep = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(["snapshot", "forget", "republish", "restage", "reset"])), max_size=4
)


def dated(rows: list[LedgerRow]) -> list[LedgerRow]:
    """Return the rows as an append stores them: with a token, a time, and what each run wrote."""
    found: list[LedgerRow] = []
    state = JobState()
    for row in rows:
        body = row.body
        if row.kind == COMMIT:
            plan = RunSpec.from_json(next(one.body for one in found if one.seq == body["run"]))
            totals = {target: TargetTotal(row.seq % 3, 1, 7, f"{row.seq:032x}") for target in BINDING.tables}
            chain = chain_hash(state.branch(plan.branch).chain, plan, totals)
            body = replace(Commit.from_json(body), targets=totals, chain=chain).as_json()
        found.append(LedgerRow(row.seq, row.kind, body, row.seq, f"token-{row.seq}"))
        state = fold_row(state, found[-1])
    return found


def kept_up(script, work) -> list[LedgerRow]:
    """Return a history in which snapshots, FORGET and other rows of upkeep follow its end, with further runs between them."""
    rows = dated(history(script))
    for at, kind in work:
        state, seq = fold(rows), len(rows) + 1
        head = state.branch("main").head
        totals = {"changelog/sums": TargetTotal(3, 1, 9, "0" * 32)}
        file = JournalFile("job=counts/x.parquet", 5, "1" * 32)
        row: LedgerRow | None = None
        if kind == "reset":
            row = decide_reset(state, ())
        elif kind == "forget":
            row = decide_forget(state, at)
        elif head is not None and kind == "snapshot":
            row = decide_snapshot(state, head, f"snapshot-{seq}", file, totals)
        elif head is not None and kind == "republish":
            target = ["output/totals", "metrics"][at % 2]
            row = decide_republish(state, "main", target, BINDING.tables[target])
        elif head is not None:
            row = decide_restage(state, state.committed[at % len(state.committed)], f"again-{seq}", file)
        if row is not None:
            stored = replace(row, recorded_at=seq, token=f"token-{seq}")
            try:
                fold_row(state, stored)
            except InvariantError:
                continue
            rows.append(stored)
        rows = with_run(rows)
    return rows


def with_run(rows: list[LedgerRow]) -> list[LedgerRow]:
    state = fold(rows)
    branch = state.branch("main")
    if not branch.is_open or branch.is_sealed:
        return rows
    name = f"later-{len(rows)}"  # none of the attempts of `history`
    feed = a_feed(branch.last_epoch + 1)
    request = RunRequest(replan=True, take_over=True, key=f"key-{len(rows)}", accept_changes=True)
    spec = plan_run(state, feed, request, BINDING, an_attempt(name), lambda _attempt: False)
    assert isinstance(spec, RunSpec)
    planned = [*rows, replace(plan_row(spec), recorded_at=len(rows) + 1, token=name)]
    totals = {target: TargetTotal(2, 1, 7, "a" * 32) for target in BINDING.tables}
    commit = Commit(
        spec.run,
        spec.attempt.id,
        JournalFile(f"job=counts/{name}.parquet", 3, "2" * 32),
        totals,
        {"events": 3},
        spec.input.clock_to_ms,
        chain_hash(branch.chain, spec, totals),
    )
    return [*planned, LedgerRow(len(planned) + 1, COMMIT, commit.as_json(), len(planned) + 1, name)]


def continued(rows: list[LedgerRow], at: int) -> JobState:
    """Return the state from what is stored after row ``at``, and the rows after it."""
    state = state_of(state_lines(fold(rows[:at])))
    for row in rows[at:]:
        state = fold_row(state, row)
    return state


@given(actions, upkeep, st.data())
def test_a_stored_state_and_later_rows_give_what_all_rows_give(script, work, data):
    rows = kept_up(script, work)
    at = data.draw(st.integers(0, len(rows)), label="stored after row")
    later = data.draw(st.integers(at, len(rows)), label="stored again after row")
    whole = fold(rows)
    for state in (continued(rows, at), continued_twice(rows, at, later)):
        check_same(state, whole)
        for field in fields(JobState):
            assert getattr(state, field.name) == getattr(whole, field.name), field.name
        assert state == whole


def continued_twice(rows: list[LedgerRow], at: int, later: int) -> JobState:
    state = state_of(state_lines(fold(rows[:at])))
    for row in rows[at:later]:
        state = fold_row(state, row)
    state = state_of(state_lines(state))
    for row in rows[later:]:
        state = fold_row(state, row)
    return state


def check_same(state: JobState, whole: JobState) -> None:
    """Compare what commands ask, before anything has looked at all runs."""
    numbers = [None, *(run.spec.run for run in whole.committed), 10_000]
    assert [*sizes_of(state)] == [*sizes_of(whole)]
    assert list(state.branches) == list(whole.branches)
    for name, branch in whole.branches.items():
        mine = state.branch(name)
        assert state.on_hold(name) == whole.on_hold(name)
        for attribute in (
            "head",
            "last_epoch",
            "is_sealed",
            "chain",
            "watermark_ms",
            "base",
            "has_own_runs",
            "own_runs",
        ):
            assert getattr(mine, attribute) == getattr(branch, attribute), attribute
        assert tuple(mine.published_runs) == tuple(branch.published_runs)
        assert [mine.index_of(run) for run in numbers] == [branch.index_of(run) for run in numbers]
        for key in ("nobody's", *(run.spec.key for run in branch.runs if run.spec.key)):
            assert run_of_request(mine, key) == run_of_request(branch, key)
        for one, other in zip(due_tables(state, name), due_tables(whole, name), strict=True):
            check_due(one, other)
        assert [*attempts_of(mine.runs)] == [run.commit.attempt for run in branch.runs]
        assert [*attempts_of(mine.runs, branch.inherited)] == [run.commit.attempt for run in branch.own_runs]
    assert run_facts(state) == run_facts(whole)
    assert {(one.text, one.timed) for one in bindings_of(state)} >= {
        (run.spec.binding.text, run.spec.binding.timed) for run in whole.committed
    }
    for path in whole.changes:
        assert state.naming(path) == whole.naming(path)
        assert published_attempts(state.shared(path)) == {run.commit.attempt for run in whole.naming(path)}
    for run in numbers:
        assert state.find_run(run) == whole.find_run(run)
        assert state.basis(run) == whole.basis(run)
        assert state.has_state(run) == whole.has_state(run)
        assert state.chain_to(run) == whole.chain_to(run)


@given(actions, upkeep, st.data())
def test_gc_forgets_what_no_kept_state_is_restored_from(script, work, data):
    rows = kept_up(script, work)
    state = continued(rows, data.draw(st.integers(0, len(rows)), label="stored after row"))
    before_ms = data.draw(st.integers(0, len(rows) + 1), label="before")
    row = decide_forget(state, before_ms)
    assert (row.body["runs"] if row else []) == unneeded(fold(rows), before_ms)


def unneeded(state: JobState, before_ms: int) -> list[int]:
    """Return what `decide_forget` should forget, by asking for the basis of each run whose state is kept."""
    wanted = [run for run in state.committed if run.recorded_at >= before_ms]
    for branch in state.branches.values():
        if branch.is_open:
            wanted += [*branch.runs[-1:], *[run for run in branch.runs if run.recorded_at < before_ms][-1:]]
    kept = {one.spec.run for run in wanted for one in state.basis(run.spec.run)}
    known = {one.spec.run for one in (*state.committed, *state.snapshots.values()) if one.recorded_at < before_ms}
    return sorted(known - kept - state.forgotten)


@given(actions, upkeep, st.data())
def test_an_attempt_is_dead_if_its_plan_was_neither_committed_nor_is_pending(script, work, data):
    rows = kept_up(script, work)
    state = continued(rows, data.draw(st.integers(0, len(rows)), label="stored after row"))
    since_reset = max((at for at, row in enumerate(rows) if row.kind == RESET), default=-1) + 1
    planned = {row.body["attempt"]["id"] for row in rows[since_reset:] if row.kind == PLAN}
    pending = [branch.pending for branch in state.branches.values() if branch.pending]
    waiting = {name for plan in pending for name in (plan.attempt.id, plan.repeats)}
    assert dead_attempts(state) == planned - {run.spec.attempt.id for run in state.committed} - waiting


def check_due(one: Due, other: Due) -> None:
    assert (one.target, one.table, one.restart) == (other.target, other.table, other.restart)
    assert len(one.publications) == len(other.publications)
    for published in range(len(other.publications) + 1):
        assert due_rows(one, published) == due_rows(other, published)
        assert due_attempts(one, published) == due_attempts(other, published)
        assert due_attempts(other, published) == {
            run.commit.attempt for run in net(other.publications[:published]).adds
        }


def long_ledger(runs: int) -> list[LedgerRow]:
    rows: list[LedgerRow] = []
    for number in range(runs):
        rows = run_rows(rows, f"attempt-{number}", a_feed(number + 1), key=f"hour-{number}")
    return rows


def test_a_plan_looks_at_the_last_runs_only(monkeypatch):
    rows, looked = long_ledger(40), []
    lines = state_lines(fold(rows[:-2]))
    make = stored_runs.StoredRuns._run
    monkeypatch.setattr(stored_runs.StoredRuns, "_run", lambda self, data: looked.append(data) or make(self, data))
    state = state_of(lines)
    assert not looked
    for row in rows[-2:]:
        state = fold_row(state, row)
    spec = plan_run(state, a_feed(41), RunRequest(key="hour-40"), BINDING, an_attempt("next"), lambda _attempt: False)
    assert isinstance(spec, RunSpec)
    assert spec.number == 41
    state = fold_row(state, LedgerRow(spec.run, PLAN, spec.as_json()))
    for due in due_tables(state, "main"):
        due_attempts(due, len(due.publications))
        if due.target.startswith("output/"):
            due_rows(due, len(due.publications))
    list(sizes_of(state))
    assert state.on_hold("main") == ()
    assert len(looked) <= 2


def test_a_rewind_and_a_branch_near_the_end_look_at_no_earlier_run(monkeypatch):
    whole = fold(long_ledger(40))
    state, looked = state_of(state_lines(whole)), []
    make = stored_runs.StoredRuns._run
    monkeypatch.setattr(stored_runs.StoredRuns, "_run", lambda self, data: looked.append(data) or make(self, data))
    monkeypatch.setattr(JobState, "has_state", lambda _state, _run: True)  # looks back to the last snapshot
    runs = [run.spec.run for run in whole.committed]
    branched = {"branch": "fix", "parent": "main", "at": runs[37]}
    rewound = {"branch": "main", "head": runs[-1], "to": runs[36]}
    for kind, body in (("BRANCH", branched), ("REWIND", rewound)):
        state = fold_row(state, LedgerRow(state.rows + 1, kind, body))
    assert shared_runs(state.branch("fix").runs, state.branch("main").runs) == 37
    assert (state.branch("main").next_number, state.branch("fix").last_epoch) == (41, 38)
    assert len(looked) <= 6
    assert [*state.branch("main").runs] == [*whole.committed[:37]]


def test_the_text_of_a_layout_does_not_change():
    """If this fails, raise `LAYOUT`: otherwise a newer version would read what an older one has stored."""
    text = "\n".join(state_lines(fold(long_ledger(3))))
    assert (LAYOUT, sha256(text.encode()).hexdigest()[:16]) == (3, "23d2171698fbb8d0")
