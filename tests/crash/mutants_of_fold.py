"""Mutants of the fold: what it must refuse. Each lets one kind of forged ledger through."""

from __future__ import annotations

from tests.crash.mutant import Mutant
from tests.crash.probes import Forged
from tests.crash.rewriting import Rewrite

FOLD, TRAVEL_FOLD, GC_FOLD = (
    "control.plan.job_fold",
    "control.plan.job_fold",
    "control.plan.job_fold",
)


def _fold(name: str, location: str, old: str, new: str) -> Mutant:
    return Mutant(name, [Rewrite(location, old, new)], [Forged()])


MUTANTS_OF_FOLD = (
    _fold(
        "fold lets be forgotten what a branch stands on",
        f"{GC_FOLD}:_fold_forget",
        "if branch.is_open and",
        "if False and",
    ),
    _fold(
        "fold accepts a gap of numbers",
        f"{FOLD}:fold_row",
        "if row.seq != state.rows + 1:",
        "if row.seq < state.rows + 1:",
    ),
    _fold(
        "fold accepts a number twice",
        f"{FOLD}:fold_row",
        "if row.seq != state.rows + 1:",
        "if row.seq > state.rows + 1:",
    ),
    _fold(
        "fold accepts a gap of epochs",
        f"{FOLD}:_fold_plan",
        "spec.input.first != branch.last_epoch + 1",
        "spec.input.first < branch.last_epoch + 1",
    ),
    _fold(
        "fold accepts an epoch twice",
        f"{FOLD}:_fold_plan",
        "spec.input.first != branch.last_epoch + 1",
        "spec.input.first > branch.last_epoch + 1",
    ),
    _fold(
        "fold accepts another parent", f"{FOLD}:_fold_plan", "spec.parent != (head.spec.run if head else None) or ", ""
    ),
    _fold(
        "fold accepts another clock", f"{FOLD}:_fold_plan", "spec.input.clock_from_ms != branch.watermark_ms or ", ""
    ),
    _fold(
        "fold accepts another attempt's COMMIT",
        f"{FOLD}:_fold_commit",
        " or branch.pending.attempt.id != commit.attempt",
        "",
    ),
    _fold(
        "fold does not check the chain",
        f"{FOLD}:_fold_commit",
        "if commit.chain != chain_hash",
        "if False and chain_hash",
    ),
    _fold(
        "fold does not check whom a promotion saw",
        f"{TRAVEL_FOLD}:_fold_promote",
        '_check_head(row, into, row.body["head"])',
        "pass",
    ),
    _fold(
        "fold does not check whom a rewind saw",
        f"{TRAVEL_FOLD}:_fold_rewind",
        '_check_head(row, branch, row.body["head"])',
        "pass",
    ),
    _fold(
        "fold lets a branch be promoted that is behind",
        f"{TRAVEL_FOLD}:_fold_promote",
        "if branch.last_epoch <",
        "if -1 >",
    ),
    _fold(
        "fold lets a branch go on that was promoted",
        f"{FOLD}:_fold_plan",
        "if branch.standing is not Standing.OPEN:",
        "if False:",
    ),
    _fold("fold lets a name be used twice", f"{TRAVEL_FOLD}:_fold_branch", "if name in state.branches:", "if False:"),
)
