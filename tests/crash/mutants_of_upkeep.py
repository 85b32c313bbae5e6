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
                'kept |= {branch.pending.attempt.id, branch.pending.repeats or ""}',
                "pass",
            )
        ],
        [Hold("run | gc", "commit")],
    ),
    Mutant(
        "gc: who is dead is judged by a state that is older than the rows",
        [
            Rewrite(
                "tables.delta.gc_job:JobGc._orphan_files",
                "rows = self._tables.ledger(self._job).read()",
                "state = self._tables.state(self._job); rows = self._tables.ledger(self._job).read()",
            ),
            Rewrite("tables.delta.gc_job:JobGc._orphan_files", "\n    state = self._tables.state(self._job)\n", "\n"),
        ],
        [Hold("gc | run", "reports > rewindow/runs: looked")],
    ),
    Mutant(
        "gc: a snapshot is published before its row",
        [
            Rewrite(
                "control.snapshot:write_snapshot",
                "return tables.stage_snapshot(state, run) if is_due(state, run, every) else None",
                "from rewindow.control.plan.ledger_state import fold_row\n"
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
            Rewrite("control.plan.retention:decide_forget", "if branch.is_open:", "if branch.name == 'main':"),
            Rewrite(
                "control.plan.ledger_state_gc:_fold_forget", "if branch.is_open and", "if branch.name == 'main' and"
            ),
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
        [Rewrite("tables.delta.reset:finish_reset", "closes=closes)", "closes=())")],
        [Hold("run | reset", "publish output/hourly")],
    ),
    Mutant(
        "republish: a run that was made again counts whatever it gave",
        [
            Rewrite(
                "control.repair:_repeat",
                "if content(made.get(target)) != content(committed.get(target)):",
                "if False:",
            )
        ],
        [Remake()],
    ),
)
