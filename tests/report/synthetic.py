"""A project whose ledgers have thousands of runs, made from its first two: every run repeats the second one, an hour later.

The rows fit: they fold, and their chain of hashes is that of a real history. Tables are not extended, because no report
reads them.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from rewindow.control.plan.job_state import LedgerRow
from rewindow.control.plan.spec import Commit, RunSpec, chain_hash
from rewindow.tables.delta.journal import Journal
from rewindow.tables.delta.ledger import Ledger
from rewindow.tables.shared.paths import JOURNAL, LANDINGS, RUNS
from tests.ingest.local_engine import HOUR

SECONDS = 2_000
"""Milliseconds between the rows PLAN and COMMIT."""


def prolong(warehouse: Path, feed: str, job: str, runs: int, *, journals: int) -> None:
    """Add landings and runs until there are so many. The last ``journals`` runs get reports of their tasks."""
    _prolong_feed(Ledger(str(warehouse / LANDINGS), feed), runs)
    ledger, journal = Ledger(str(warehouse / RUNS), job), Journal(str(warehouse / JOURNAL), job)
    known = ledger.read()
    plan, commit = known[-2], known[-1]
    reports = journal.read(Commit.from_json(commit.body).journal, commit.body["attempt"])
    done, seq = plan.body["number"], known[-1].seq
    parent, chain = plan.body["run"], commit.body["chain"]
    rows: list[LedgerRow] = []
    for number in range(done + 1, runs + 1):
        later = (number - done) * HOUR
        body = _deep(plan.body)
        span = {"first_epoch": number, "last_epoch": number, "number": number, "parent": parent, "run": seq + 1}
        clocks = {name: plan.body[name] + later for name in ("clock_from_ms", "clock_to_ms")}
        body.update(span | clocks)
        body["attempt"]["id"] = attempt = f"{number:032x}"
        spec = RunSpec.from_json(body)
        was = Commit.from_json(commit.body)
        chain = chain_hash(chain, spec, was.targets)
        file = journal.append(attempt, reports) if number > runs - journals else was.journal
        made = _deep(commit.body) | {"run": seq + 1, "attempt": attempt, "chain": chain}
        made |= {"watermark_ms": spec.input.clock_to_ms, "journal": {**_deep(made["journal"]), "path": file.path}}
        made["journal"] |= {"bytes": file.bytes, "digest": file.digest}
        at = plan.recorded_at + later
        rows.append(LedgerRow(seq + 1, "PLAN", body, at))
        rows.append(LedgerRow(seq + 2, "COMMIT", made, at + SECONDS))
        parent, seq = seq + 1, seq + 2
    assert not rows or ledger.append(rows)


def _prolong_feed(ledger: Ledger, landings: int) -> None:
    known = ledger.read()
    last, rows = known[-1], []
    for number in range(last.body["landing"] + 1, landings + 1):
        body = _deep(last.body)
        more = number - last.body["landing"]
        body["landing"], body["watermark"] = number, last.body["watermark"] + more * HOUR
        for one in body["ranges"]:
            added = one[3] - one[2]
            one[2:6] = [one[2] + more * added, one[3] + more * added, one[4] + more * HOUR, one[5] + more * added]
        rows.append(LedgerRow(last.seq + more, "LANDING", body, last.recorded_at + more * HOUR))
    assert not rows or ledger.append(rows)


def _deep(body: Any) -> dict[str, Any]:
    return copy.deepcopy(dict(body))
