"""Mutants of what keeps the tables of a job small, fixes them and empties them: `gc`, `republish`, `reset`."""

from __future__ import annotations

from tests.crash.mutant import Mutant
from tests.crash.probes import Hold, Kill, Remake
from tests.crash.rewriting import Rewrite

MUTANTS_OF_UPKEEP = (
    Mutant(
        "gc: what is not committed yet is dead",
        [
            Rewrite(
                "control.plan.retention:dead_attempts",
                "state.dead - {plan.repeats for plan in pending}",
                "state.dead | {plan.attempt.id for plan in pending}",
            )
        ],
        [Hold("run | gc", "commit")],
    ),
    Mutant(
        "gc: a snapshot is published before its row",
        [
            Rewrite(
                "control.run:write_snapshot",
                "return tables.stage_snapshot(state, run) if is_due(state, run, every) else None",
                "from rewindow.control.plan.job_fold import fold_row\n"
                "        row = tables.stage_snapshot(state, run) if is_due(state, run, every) else None\n"
                "        if row is not None:\n"
                "            list(tables.publish(job, fold_row(state, row), run.spec.branch))\n"
                "        return row",
            )
        ],
        [Hold("gc | run", "snapshot")],
    ),
    Mutant(
        "gc: what a branch stands on is forgotten",
        [
            Rewrite(
                "control.plan.retention:_wanted",
                "if branch.is_open and branch.head",
                "if branch.name == 'main' and branch.head",
            ),
            Rewrite("control.plan.job_fold:_fold_forget", "if branch.is_open and", "if branch.name == 'main' and"),
        ],
        [Hold("gc | promote", "forget")],
    ),
    Mutant(
        "republish: a table is published anew under its old id",
        [
            Rewrite(
                "tables.delta.publish:publish",
                "publication_id(state.ledger, job, due.target, due.restart.epoch)",
                "publication_id(state.ledger, job, due.target)",
            )
        ],
        [Kill("republish", "republish")],
    ),
    Mutant(
        "reset: the identity of the ledger is not part of the application id",
        [Rewrite("tables.shared.publications:publication_id", "{ledger}/", "")],
        [Kill("reset", "empty"), Kill("reset-deleted", "empty")],
    ),
    Mutant(
        "reset: the old application ids stay open",
        [Rewrite("tables.delta.publish:finish_reset", "closes=closes)", "closes=())")],
        [Hold("run | reset", "publish output/hourly")],
    ),
    Mutant(
        "republish: a run that was made again counts whatever it gave",
        [
            Rewrite(
                "control.drift_repair:_repeat",
                "if content(made.get(target)) != content(committed.get(target)):",
                "if False:",
            )
        ],
        [Remake()],
    ),
)
