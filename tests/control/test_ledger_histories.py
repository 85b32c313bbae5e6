"""Properties of histories of runs, holds, deaths and branch operations: each ledger is legal, and no broken one is."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow.control.plan.branch_decisions import (
    decide_accept,
    decide_branch,
    decide_drop,
    decide_promote,
    decide_rewind,
    find_run,
)
from rewindow.control.plan.job_fold import COMMIT, FENCE, NOTE, fold
from rewindow.control.plan.job_state import LedgerRow, Standing
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.spec import RunRequest
from rewindow.errors import CheckpointError, InvariantError, RewindowError
from rewindow.tables.shared.publications import net
from tests.control.ledgers import BINDING, a_feed, commit_row, plan, plan_row

actions = st.lists(
    st.tuples(
        st.sampled_from(
            ["run", "run", "hold", "die", "fence", "note", "branch", "rewind", "promote", "drop", "accept"]
        ),
        st.sampled_from(["main", "trial"]),
        st.integers(1, 4),
        st.booleans(),
    ),
    max_size=12,
)


TRAVELS = ("branch", "rewind", "promote", "drop", "accept")


def travelled(action, state, branch, landings, name):
    """Return the rows of a branch operation: none if it is refused."""
    names = [name for name, one in state.branches.items() if one.standing is Standing.OPEN]
    names = [name for name in names if action == "accept" or name != "main"]
    branch = names[landings % len(names)] if names else "none"
    head = state.branch(branch).head
    back = str(max(0, head.spec.number - landings)) if head else "0"
    try:
        match action:
            case "branch":
                at = find_run(state, state.branch(branch), back)
                row = decide_branch(state, name if landings % 2 else "trial", branch, at)
            case "rewind":
                row = decide_rewind(state, branch, back)
            case "promote":
                row = decide_promote(state, branch, "main", BINDING)
            case "accept":
                held = state.on_hold(branch)
                row = decide_accept(state, branch, held[landings % len(held)].spec.name if held else None)
            case _:
                row = decide_drop(state, branch)
    except RewindowError:
        return []
    return [row] if row else []


def history(script):
    """Play a script on a growing feed: runs, dead attempts, fences, notes and branch operations."""
    rows: list[LedgerRow] = []
    for number, (action, branch, landings, replan) in enumerate(script):
        feed = a_feed(landings + number)
        pending = fold(rows).branch(branch).pending
        if action in TRAVELS:
            rows += travelled(action, fold(rows), branch, landings, f"branch-{number}")
        elif action == "note":
            rows.append(LedgerRow(len(rows) + 1, NOTE, {}))
        elif action == "fence":
            if pending:
                rows.append(LedgerRow(len(rows) + 1, FENCE, {"run": pending.run}))
        else:
            try:
                spec = plan(rows, f"attempt-{number}", feed, RunRequest(branch=branch, replan=replan))
            except CheckpointError:
                continue  # the branch was promoted or dropped
            if isinstance(spec, UpToDate):
                continue
            rows.append(plan_row(spec))
            if action in ("run", "hold"):
                rows.append(commit_row(rows, spec, holds=action == "hold"))
    return rows


@given(actions)
def test_what_the_planner_writes_is_legal_and_takes_each_epoch_once(script):
    state = fold(history(script))
    for branch in state.branches.values():
        epochs = [epoch for run in branch.runs for epoch in run.spec.epochs]
        assert epochs == list(range(1, len(epochs) + 1))
        # The branch's tables end with exactly the rows of its own runs, except those that wait behind a run on hold.
        published = branch.published_runs[branch.inherited :]
        added = [run.seq for publication in branch.publications for run in publication.adds]
        removed = [run.seq for publication in branch.publications for run in publication.removes]
        assert Counter(added) == Counter([*removed, *(run.seq for run in published)])
        assert net(branch.publications).adds == published
        if branch.is_kept and branch.is_open:
            held = state.on_hold(branch.name)
            assert held[:1] == branch.own_runs[len(published) : len(published) + 1]
            assert not any(run in published for run in held)
    assert [run.shared_ordinal for run in state.committed] == list(range(1, len(state.committed) + 1))
    assert len({run.spec.run for run in state.committed}) == len(state.committed)


@given(actions, st.data())
def test_a_ledger_with_a_row_lost_doubled_or_moved_is_illegal(script, data):
    rows = history(script)
    numbered = [row for row in rows if row.kind != NOTE]
    if not numbered:
        return
    at = data.draw(st.integers(0, len(rows) - 1))
    kind = data.draw(st.sampled_from(["lost", "doubled", "moved"]))
    if kind == "lost":
        broken = rows[:at] + rows[at + 1 :]
        if at == len(rows) - 1:
            return  # without its last row, it is a legal, earlier ledger
    elif kind == "doubled":
        broken = [*rows[: at + 1], rows[at], *rows[at + 1 :]]
    else:
        to = data.draw(st.integers(0, len(rows) - 1))
        broken = list(rows)
        broken[at], broken[to] = broken[to], broken[at]
        if at == to:
            return
    with pytest.raises(InvariantError):
        fold(broken)


@given(actions, st.data())
def test_a_commit_lost_and_the_rows_renumbered_stops_at_the_next_plan(script, data):
    rows = history(script)
    commits = [row for row in rows if row.kind == COMMIT]
    if not commits:
        return
    lost = data.draw(st.sampled_from(commits))
    renumbered = [LedgerRow(n, row.kind, row.body) for n, row in enumerate((r for r in rows if r != lost), start=1)]
    later = [row for row in rows if row.seq > lost.seq and row.kind == "PLAN"]
    if later:
        with pytest.raises(InvariantError):
            fold(renumbered)
