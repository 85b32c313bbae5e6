"""The queries of Nexmark give the same tables in one run and in a run for each landing, and the rows that a loop gives."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from rewindow.tables.delta.table_rows import read_rows
from tests.bench.nexmark.events import START_MS, write_events
from tests.bench.nexmark.measure import FEED, LOGS, PROJECT

SECONDS, EVENTS = 16, 30_000
"""The events are three seconds long, and stretched, so that they fill several windows."""
STRETCHED = 5


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> OpenProject:
    root = tmp_path_factory.mktemp("nexmark") / "project"
    shutil.copytree(PROJECT, root)
    write_events(root / "raw", EVENTS, stretched=STRETCHED)
    found = OpenProject.open(root)
    found.land(FEED, until_ms=START_MS + (SECONDS + 2) * 1_000)
    return found


@pytest.mark.parametrize("query", LOGS)
def test_one_run_or_one_for_each_landing(project: OpenProject, query: str) -> None:
    project.run(query, RunRequest(branch="once", final=True))
    landings = len(project.tables.feed(FEED).landings)
    assert landings > 5
    for landing in range(1, landings):
        project.run(query, RunRequest(branch="many", through_landing=landing))
    project.run(query, RunRequest(branch="many", final=True))
    assert project.tables.hashes(query, "once") == project.tables.hashes(query, "many")
    rows = read_rows(f"{project.warehouse}/{FEED}/{query}__once").to_pylist()
    names = [name for name in rows[0] if not name.startswith("_") and name != "window_end"]
    assert sorted(tuple(row[name] for name in names) for row in rows) == sorted(EXPECTED[query](project.root / "raw"))


def _events(raw: Path, log: str, time: str = "happened_at") -> list[dict[str, Any]]:
    events = pq.read_table(raw / log).to_pylist()
    return [{**event, "at": int(event[time].timestamp() * 1_000)} for event in events]


def _starts(at: int, every_ms: int = 10_000) -> range:
    """Return the starts of the windows of ten seconds that have a time, one every ``every_ms``."""
    last = at // every_ms * every_ms
    return range(last, at - 10_000, -every_ms)


def q5(raw: Path) -> list[tuple[Any, ...]]:
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for bid in _events(raw, "bids"):
        for start in _starts(bid["at"], 5_000):
            counts[start][bid["auction"]] += 1
    most = {start: max((bids, auction) for auction, bids in one.items()) for start, one in counts.items()}
    return [(start, auction, bids) for start, (bids, auction) in most.items()]


def q7(raw: Path) -> list[tuple[Any, ...]]:
    bids: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for bid in _events(raw, "bids"):
        bids[_starts(bid["at"])[0]].append((bid["price"], bid["bidder"], bid["auction"]))
    return [(start, *max(one)) for start, one in bids.items()]


def q8(raw: Path) -> list[tuple[Any, ...]]:
    auctions = Counter((one["seller"], _starts(one["at"])[0]) for one in _events(raw, "auctions"))
    persons = [(one["id"], _starts(one["at"])[0], one["name"]) for one in _events(raw, "persons")]
    return [(*person, auctions[person[:2]]) for person in persons if person[:2] in auctions]


def q11(raw: Path) -> list[tuple[Any, ...]]:
    times: dict[int, list[int]] = defaultdict(list)
    for bid in _events(raw, "bids"):
        times[bid["bidder"]].append(bid["at"])
    found = []
    for bidder, all_of_them in times.items():
        session: list[int] = []
        for at in sorted(all_of_them):
            if session and at - session[-1] > 10_000:
                found.append((bidder, session[0], len(session)))
                session = []
            session.append(at)
        found.append((bidder, session[0], len(session)))
    return found


def q12(raw: Path) -> list[tuple[Any, ...]]:
    counts = Counter((bid["bidder"], _starts(bid["at"])[0]) for bid in _events(raw, "bids", "arrived_at"))
    return [(*where, bids) for where, bids in counts.items()]


EXPECTED = {"q5": q5, "q7": q7, "q8": q8, "q11": q11, "q12": q12}
