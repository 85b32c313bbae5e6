"""Mutants of branches: which plan may be committed, what a rewind or promotion publishes, whose state a run goes on from."""

from __future__ import annotations

from tests.crash.mutant import Mutant
from tests.crash.mutants_of_commits import PUBLISH, RENUMBERED
from tests.crash.mutants_of_fold import FOLD, TRAVEL_FOLD
from tests.crash.probes import Forged, Hold, Kill
from tests.crash.rewriting import Rewrite

MUTANTS_OF_BRANCHES = (
    Mutant(
        "no fence check before COMMIT",
        [Rewrite("control.run:_commit", "check_is_pending(state, spec)", "pass")],
        [Hold("run | run", "commit")],
    ),
    Mutant(
        "the COMMIT of a fenced plan is pressed through",
        [
            Rewrite("control.run:_commit", "check_is_pending(state, spec)", "pass"),
            Rewrite(
                f"{FOLD}:_fold_commit",
                "branch = _pending_in(state, commit.run)",
                "branch = _pending_in(state, commit.run) or next(iter(state.branches.values()))",
            ),
            Rewrite(f"{FOLD}:_fold_commit", "or branch.pending is None or", "or"),
        ],
        [Hold("run | run", "commit")],
    ),
    Mutant(
        "a plan does not fence",
        [Rewrite(f"{FOLD}:_fold_plan", "pending=spec)", "pending=branch.pending or spec)")],
        [Kill("run", "execute sub"), Forged()],
    ),
    Mutant(
        "a rewind forgets to fence",
        [Rewrite(f"{TRAVEL_FOLD}:_fold_rewind", ", pending=None", "")],
        [Hold("run | rewind", "commit"), Forged()],
    ),
    Mutant(
        "a rewind takes the rows of another run",
        [Rewrite(f"{PUBLISH}:publish", "frozenset(run.spec.run for", "frozenset(run.spec.run - 2 for")],
        [Kill("rewind", "decide")],
    ),
    Mutant(
        "a rewind takes no rows",
        [Rewrite(f"{PUBLISH}:publish", "for run in publication.removes)", "for run in ())")],
        [Kill("rewind", "decide")],
    ),
    Mutant(
        "a promotion is decided once and pressed through",
        [RENUMBERED, Rewrite(f"{TRAVEL_FOLD}:_check_head", "if head != expected:", "if False:")],
        [Hold("promote | run", "decide"), Hold("promote | rewind", "decide")],
    ),
    Mutant(
        "a rewind that is called again is refused",
        [
            Rewrite(
                "control.plan.branch_decisions:decide_rewind",
                "return None",
                "raise UsageError('there is nothing to rewind')",
            )
        ],
        [Kill("rewind", "publish")],
    ),
    Mutant(
        "a promotion that is called again is refused",
        [Rewrite("control.plan.branch_decisions:decide_promote", "if was_promoted(state, branch, into):", "if False:")],
        [Kill("promote", "publish")],
    ),
    Mutant(
        "a branch that is begun again is refused",
        [
            Rewrite(
                "control.plan.branch_decisions:decide_branch",
                "if existing is not None and existing.is_open and",
                "if False and",
            )
        ],
        [Kill("backfill", "plan")],
    ),
    Mutant(
        "a branch that is dropped again is refused",
        [
            Rewrite(
                "control.plan.branch_decisions:decide_drop",
                "if branch is not None and not branch.is_kept:\n        return None\n    if branch is None:",
                "if branch is None or not branch.is_kept:",
            )
        ],
        [Kill("drop", "end")],
    ),
    Mutant(
        "a rewind that is called again publishes nothing",
        [
            Rewrite(
                "control.branch:rewind",
                'yield "recover"\n    yield from catch_up(job, tables, branch)',
                'yield "recover"',
            ),
            Rewrite(
                "control.branch:rewind",
                "    yield from catch_up(job, tables, branch)\n    return row",
                "    if row is not None:\n        yield from catch_up(job, tables, branch)\n    return row",
            ),
        ],
        [Kill("rewind", "publish")],
    ),
    Mutant(
        "a promotion leaves the rows that were there",
        [Rewrite(f"{TRAVEL_FOLD}:_fold_promote", ", removes=into.runs[common:]", "")],
        [Kill("promote", "decide")],
    ),
    Mutant(
        "a promotion names the branch's files without copying them",
        [Rewrite(f"{PUBLISH}:_files", "if staged_for.path != due.table.path:", "if False:")],
        [Kill("promote", "decide")],
    ),
    Mutant(
        "a run on hold is published",
        [Rewrite("control.plan.job_fold:_with_run", "run.commit.holds or branch.unpublished", "False")],
        [Kill("run-on-hold", "commit")],
    ),
    Mutant(
        "what is behind a run on hold is published",
        [Rewrite("control.plan.job_fold:_with_run", "run.commit.holds or branch.unpublished", "run.commit.holds")],
        [Kill("rewind-on-hold", "publish")],
    ),
    Mutant(
        "an accepted run is not released",
        [Rewrite("control.plan.job_fold:_released", "count += 1", "pass")],
        [Kill("accept", "accept")],
    ),
    Mutant(
        "a table published anew keeps what was there",
        [Rewrite(f"{PUBLISH}:_retract", "return retract_all", "return None")],
        [Kill("republish", "republish")],
    ),
    Mutant(
        "a table published anew gets what was rewound",
        [Rewrite("tables.shared.publications:net", "runs.pop(run.spec.run, None)", "pass")],
        [Kill("republish", "republish")],
    ),
    Mutant(
        "a table published anew leaves the old ids open",
        [Rewrite(f"{PUBLISH}:publish", "range(1, epoch)", "range(0)")],
        [Hold("run | rewind-republish", "publish output/hourly")],
    ),
    Mutant(
        "a shared table gets the runs of one branch",
        [
            Rewrite(
                "control.plan.job_state:_by_path",
                "for run in runs:",
                "for run in (one for one in runs if one.spec.branch == 'main'):",
            )
        ],
        [Kill("backfill", "commit")],
    ),
    Mutant(
        "a run stands on every run that was committed",
        [Rewrite("control.plan.job_state:JobState._back_from", "if committed.spec.run == run:", "if True:")],
        [Kill("backfill", "commit")],
    ),
    Mutant(
        "a run forgets what its parent changed",
        [
            Rewrite(
                "tables.delta.checkpoints:find_checkpoint",
                "changelog_files(path, target, basis, reports, as_staged=as_staged)",
                "changelog_files(path, target, basis[:-1], reports, as_staged=as_staged)",
            )
        ],
        [Kill("run", "commit")],
    ),
    Mutant(
        "the parent is not published before it is read",
        [
            Rewrite("tables.delta.warehouse:DeltaTables.restore", "if parent and", "if False and"),
            Rewrite("tables.delta.warehouse:DeltaTables.restore", "except StorageError:", "except ZeroDivisionError:"),
        ],
        [Hold("run | run-unpublished", "plan")],
    ),
)
