"""What the tables say, read by a program of its own: hashes, rows, and whether ledger, journal and tables agree."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from rewindow.control.ingest.landings import LANDING
from rewindow.control.plan.job_state import Branch, CommittedRun, JobState, Standing
from rewindow.control.plan.spec import OUTPUT
from rewindow.tables.delta.feeds import DeltaFeedTables
from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from rewindow.tables.delta.warehouse import DeltaTables
from rewindow.tables.shared.paths import JOURNAL, LANDINGS, QUARANTINE, log_path
from rewindow.tables.shared.publications import publication_id
from tests.crash.scene import FEED, JOB, TOPIC

View = dict[str, Any]
"""The values that must be equal."""


def view(warehouse: str) -> View:
    """Say what is true in a warehouse. Raises where its tables contradict each other (`AssertionError`) or the ledger."""
    says = {**_landed(warehouse)}
    if (Path(warehouse) / "rewindow" / "runs").exists():
        says |= _replayed(warehouse)
    return says


def verdict(expected: View, found: View) -> str:
    """Say ``ok``, ``lost``, ``doubled`` or ``wrong``, and where."""
    if expected == found:
        return "ok"
    for table, rows in expected["rows"].items():
        due, there = Counter(rows), Counter(found["rows"].get(table, ()))
        if missing := due - there:
            return f"lost: {table} lacks {next(iter(missing))}"
        if extra := there - due:
            row = next(iter(extra))
            return f"{'doubled' if row in due else 'wrong'}: {table} has {row}"
    parts = [part for part in expected if expected[part] != found.get(part)]
    return f"wrong: {parts} {_differing(expected, found, parts[0]) if parts else sorted(found)}"


def _differing(expected: View, found: View, part: str) -> str:
    return f"{json.dumps(expected[part])[:300]} / {json.dumps(found.get(part))[:300]}"


def _landed(warehouse: str) -> View:
    if not (Path(warehouse) / LANDINGS).exists():
        return {"rows": {}}
    tables = DeltaFeedTables(warehouse)
    ledger = tables.state(FEED)
    names = ("landing", "generation", "watermark", "ranges")
    landings = [{name: row.body[name] for name in names} for row in ledger if row.kind == LANDING]
    rows = {}
    for path in (log_path(FEED, TOPIC), QUARANTINE):
        if DeltaTable.is_deltatable(table_path(warehouse, path)):
            found = read_rows(table_path(warehouse, path)).to_pylist()
            rows[path] = sorted(text_of(row) for row in found)
            _check_once(path, warehouse)
    if any("files" in row.body for row in ledger):
        assert list(tables.publish_steps(FEED)) == [], "something was left to publish"
    return {"landings": landings, "rows": rows}


def _replayed(warehouse: str) -> View:
    tables = DeltaTables(warehouse)
    state = tables.state(JOB)
    says: View = {"hashes": {}, "branches": {}}
    rows = _landed(warehouse)["rows"]
    _check_journal(warehouse, state)
    for branch in state.branches.values():
        assert list(tables.publish(JOB, state, branch.name)) == [], f"{branch.name}: something was left to publish"
        says["hashes"][branch.name] = tables.hashes(JOB, branch.name)
        held = [run.spec.name for run in state.on_hold(branch.name)]
        says["branches"][branch.name] = [branch.last_epoch, str(branch.standing), *held]
        for target, table in branch.tables.items():
            path = table_path(warehouse, table.path)
            if Path(path).exists():
                _check_once(table.path, warehouse)
            if target.startswith(OUTPUT) and branch.standing is Standing.DROPPED:
                continue  # `gc` may have removed it
            if target.startswith(OUTPUT):
                found = read_rows(path).to_pylist()
                if branch.standing is Standing.OPEN:
                    check_output(branch, target, found)
                _check_ordinal(path, target, branch, state.ledger)
                rows[table.path] = sorted(text_of(row) for row in found)
            else:
                _check_shared(path, target, state.naming(table.path))
    return {**says, "rows": rows}


def check_output(branch: Branch, target: str, rows: Sequence[Mapping[str, Any]]) -> None:
    counts = Counter((row["_partition"], row["_offset"]) for row in rows)
    assert not counts or max(counts.values()) == 1, f"doubled output: {target} {counts.most_common(1)}"
    by_run = Counter(row["_run"] for row in rows)
    for run in branch.published_runs[branch.inherited :]:
        total = run.commit.targets.get(target)
        due = total.rows if total else 0
        found = by_run.pop(run.spec.run, 0)
        word = "lost" if found < due else "doubled"
        assert found == due, f"{word}: {target} has {found} rows of run {run.spec.name}, committed were {due}"
    assert not by_run, f"{target} has rows of runs that do not count: {dict(by_run)}"


def _check_ordinal(path: str, target: str, branch: Branch, ledger: str) -> None:
    epoch = branch.restarts[target].epoch if target in branch.restarts else 1
    last = DeltaTable(path).transaction_version(publication_id(ledger, JOB, target, epoch)) or 0
    assert last == len(branch.publications), f"{target}: {last} publications of {len(branch.publications)}"


def _check_shared(path: str, target: str, runs: Sequence[CommittedRun]) -> None:
    by_run = Counter(read_rows(path, ["_run"])["_run"].to_pylist())
    for run in runs:
        total = run.commit.targets.get(target)
        due = total.rows if total else 0
        found = by_run.pop(run.spec.run, 0)
        word = "lost" if found < due else "doubled"
        assert found == due, f"{word}: {target} has {found} rows of run {run.spec.name}, committed were {due}"
    assert not by_run, f"{target} has rows of runs that were not committed: {dict(by_run)}"


def _check_journal(warehouse: str, state: JobState) -> None:
    path = table_path(warehouse, JOURNAL)
    if not DeltaTable.is_deltatable(path):
        return
    _check_once(JOURNAL, warehouse)
    rows = read_rows(path).to_pylist()
    counts = Counter((row["attempt"], row["sub_topology"], row["partition"]) for row in rows)
    assert not counts or max(counts.values()) == 1, f"doubled: the journal has {counts.most_common(1)}"
    attempts = {row["attempt"] for row in rows}
    lacking = [run.spec.name for run in state.committed if run.commit.attempt not in attempts]
    assert not lacking, f"lost: the journal lacks {lacking}"


def _check_once(name: str, warehouse: str) -> None:
    """See that no version of the log adds a file that another had added: who reads version by version sees it twice."""
    seen: Counter[str] = Counter()
    for log in sorted((Path(table_path(warehouse, name)) / "_delta_log").glob("*.json")):
        for line in log.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                seen[action["add"]["path"]] += 1
            if "remove" in action:
                seen[action["remove"]["path"]] -= 1
    twice = [path for path, times in seen.items() if times > 1]
    assert not twice, f"doubled: {name} adds a file twice: {twice[:2]}"


def text_of(row: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in row.items() if name != "_run"}, sort_keys=True, default=str)
