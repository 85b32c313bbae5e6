"""Mutants of how a thing lands once: rows of the ledger, staged files and their audit, publications."""

from __future__ import annotations

from tests.crash.mutant import Mutant
from tests.crash.probes import Ask, Hold, Kill, Lose, Spoil
from tests.crash.rewriting import Rewrite

LEDGER, TABLES, PUBLISH = "tables.delta.ledger:Ledger", "tables.delta.commit", "tables.delta.publish"
_ANY_LAST = Rewrite("tables.delta.ledger:check_complete", " or last != end", "")
RENUMBERED = Rewrite(
    "tables.delta.warehouse:DeltaTables.append",
    "return self.ledger(job).append(dated(rows))",
    "from dataclasses import replace\n"
    "    first = len(self.ledger(job).read()) + 1\n"
    "    rows = [replace(row, seq=seq) for seq, row in enumerate(rows, start=first)]\n"
    "    return self.ledger(job).append(dated(rows))",
)
"""A row that came too late takes the next number."""


def _without_txn(which: str) -> list[Rewrite]:
    """Commit under an id that nobody asks for, again after an exception; what returned has landed."""
    return [
        Rewrite(
            f"{TABLES}:commit_files",
            "last = table.transaction_version(app_id) or after",
            f"blind = {which!r} in app_id\n"
            "        known = table.transaction_version(app_id) or after\n"
            "        last = version - (not was_sent or failure is not None) if blind else known\n"
            "        failure = None",
        ),
        Rewrite(
            f"{TABLES}:commit_files",
            "app_id, version, closes)",
            "app_id + str(time.time_ns()) if blind else app_id, version, closes)",
        ),
    ]


MUTANTS_OF_COMMITS = (
    Mutant(
        "ledger append without txn",
        [
            Rewrite(f"{LEDGER}.append", "self._app_id, rows[-1].seq)", "new_token(), rows[-1].seq)"),
            _ANY_LAST,
        ],
        [Hold("run | run", "plan > rewindow/runs: files"), Hold("run | run", "commit > rewindow/runs: files")],
    ),
    Mutant(
        "ledger: an exception means that nothing landed",
        [Rewrite(f"{LEDGER}.append", "failure = error", "return False")],
        [Ask("run", "lost")],
    ),
    Mutant(
        "ledger: no exception means that it landed",
        [
            Rewrite(
                f"{LEDGER}.append",
                "self._app_id, rows[-1].seq)\n",
                "self._app_id, rows[-1].seq)\n            return True\n",
            )
        ],
        [Ask("run", "made up")],
    ),
    Mutant(
        "ledger: whoever finds a row at its number takes it for its own",
        [Rewrite(f"{LEDGER}.append", "== texts", "!= ()")],
        [Hold("run | run", "plan > rewindow/runs: files")],
    ),
    Mutant(
        "ledger: a row that came too late takes the next number",
        [RENUMBERED],
        [Hold("run | run", "commit > rewindow/runs"), Hold("run | run", "plan > rewindow/runs")],
    ),
    Mutant(
        "ledger: a decision that came too late counts",
        [Rewrite("control.ledger_steps:update", "ledger.append(name, *rows)", "[ledger.append(name, *rows)]")],
        [Hold("run | run", "plan > rewindow/runs: files")],
    ),
    Mutant(
        "ledger: a merge forgets the newest row",
        [
            Rewrite(f"{LEDGER}._merge", "self._files.rows(paths)", "self._files.rows(paths)[:-1]"),
            Rewrite(f"{LEDGER}.append", "else _FILES_MAX):", "else 2):"),
        ],
        [Kill("run", "plan")],
    ),
    Mutant(
        "any commit through a handle that was not asked",
        [
            Rewrite(f"{TABLES}:commit_actions", "table.create_write", "DeltaTable(table.table_uri).create_write"),
            Rewrite(
                f"{TABLES}:_was_appended",
                "append_commit(table.path, table,",
                "append_commit(table.path, take(table.path),",
            ),
            _ANY_LAST,
        ],
        [Hold("publish | publish", "publish"), Hold("run | run", "plan > rewindow/runs: looked")],
    ),
    Mutant("stage without txn", _without_txn("rewindow.journal"), [Ask("run", "lost")]),
    Mutant(
        "publish without txn", _without_txn("rewindow.pub"), [Kill("run", "publish output/hourly"), Ask("run", "lost")]
    ),
    Mutant(
        "publish only the newest",
        [
            Rewrite(
                f"{PUBLISH}:publish",
                "ordinals = missing(due, published)",
                "ordinals = missing(due, published)[-1:]",
            ),
            Rewrite(f"{TABLES}:commit_files", "if last != version - 1 else 0", "if last > version - 1 else 0"),
        ],
        [Kill("publish", "publish main")],
    ),
    Mutant(
        "publish one ordinal too few",
        [Rewrite(f"{PUBLISH}:publish", "missing(due, published)", "missing(due, published)[:-1]")],
        [Kill("run", "publish")],
    ),
    Mutant(
        "publish before the COMMIT row",
        [
            Rewrite(
                "control.run:_commit",
                "return LedgerRow(state.rows + 1, COMMIT, commit.as_json())",
                "from rewindow.control.plan.job_fold import fold_row\n"
                "        row = LedgerRow(state.rows + 1, COMMIT, commit.as_json())\n"
                "        list(tables.publish(spec.job, fold_row(state, row), spec.branch))\n"
                "        return row",
            )
        ],
        [Kill("run", "commit > rewindow/runs: files")],
    ),
    Mutant(
        "recovery does not publish",
        [
            Rewrite(
                "control.run:steps",
                "yield from tables.publish(job.name, state, request.branch)",
                "pass",
            )
        ],
        [Kill("run", "publish")],
    ),
    Mutant(
        "audit switched off",
        [Rewrite("tables.delta.warehouse:DeltaTables.audit", "audit_files(reports, self._roots(spec, ()))", "pass")],
        [Spoil("out/hourly")],
    ),
    Mutant(
        "audit looks at sizes only",
        [Rewrite("tables.delta.journal:_check_bytes", "if digest != file.file_digest:", "if False:")],
        [Spoil("out/hourly")],
    ),
    Mutant(
        "audit does not count tasks",
        [Rewrite("tables.shared.audit:audit_counts", "if sorted(tasks) != due:", "if False:")],
        [Lose("report")],
    ),
    Mutant(
        "audit does not count records",
        [Rewrite("tables.shared.audit:audit_counts", "if taken != wanted:", "if False:")],
        [Lose("records")],
    ),
)
