"""Clients of Spark Connect killed at each site of each operation on governed tables; the same command again; all rows compared.

Cases follow one another, because they share one server.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from rewindow.control.plan.job_state import Standing
from rewindow.control.plan.spec import MAIN, OUTPUT
from rewindow.tables.governed.own_table import METRICS_VIEW
from tests.crash.forks import answer, fork, preload
from tests.crash.governed_ground import HOME, Kept, backend, connected, empty, server
from tests.crash.governed_operations import OPERATIONS, SAMPLE, Operation
from tests.crash.governed_sites import DURING, die_at, traced
from tests.crash.judge import View, check_output, text_of, verdict
from tests.crash.matrix import Outcome, folder, in_a_line
from tests.crash.results import Results
from tests.crash.scene import FEED, JOB
from tests.crash.settings import Figures, Settings
from tests.protocol.backends import Backend

SEEDS = (1, 2)
"""Seeds of which each run adds rows: without rows nothing is on hold, and nothing is lost."""
QUICK = ("commit > append rewindow_ledger: while it executes", "publish output/hourly 2 > append hourly: executed")
"""Sites of the sample at which a quick call kills."""


def view(root: Path) -> View:
    """Say what is true in the catalog. Raises `AssertionError` where its tables contradict the ledger."""
    tables = backend(root)
    warehouse = tables.tables()
    state = warehouse.state(JOB)
    landed = tables.landed(FEED)
    says: View = {"landings": landed["landings"], "rows": {"log": _texts(landed["log"])}, "branches": {}}
    for branch in state.branches.values():
        assert list(warehouse.publish(JOB, state, branch.name)) == [], f"{branch.name}: something was left to publish"
        held = [run.spec.name for run in state.on_hold(branch.name)]
        says["branches"][branch.name] = [branch.last_epoch, str(branch.standing), *held]
        if branch.standing is Standing.OPEN:
            for target, table in branch.tables.items():
                if target.startswith(OUTPUT):
                    rows = connected().table(warehouse.name_of(table.path).quoted).toArrow().to_pylist()
                    check_output(branch, target, rows)
                    says["rows"][table.path] = _texts(rows)
    _check_own(tables, {run.commit.attempt for run in state.committed})
    return says


def _check_own(tables: Backend, committed: set[str]) -> None:
    """See that rewindow's own table has no row twice and each committed attempt, and that the metrics can be read."""
    columns = ["name", "seq", "kind", "attempt", "sub_topology", "partition", "path", "body"]
    rows = tables.tables().own.table.frame().select(*columns).toArrow().to_pylist()
    numbers = Counter((row["name"], row["seq"]) for row in rows if row["seq"] is not None)
    assert max(numbers.values()) == 1, f"doubled: the ledger has {numbers.most_common(1)}"
    staged = Counter(json.dumps(row, sort_keys=True) for row in rows if row["seq"] is None and row["kind"] != "metric")
    assert not staged or max(staged.values()) == 1, f"doubled: the journal has {staged.most_common(1)}"
    lacking = committed - {row["attempt"] for row in rows if row["kind"] == "report"}
    assert not lacking, f"lost: the journal lacks {lacking}"
    metrics = sum(1 for row in rows if row["kind"] == "metric")
    assert connected().table(f"{HOME}.{METRICS_VIEW}").count() == metrics, "lost: the view of the metrics"


def _texts(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(text_of, rows))


class Ground:
    """What comes before an operation, the sites of a clean call with the seconds of each, and what is true after it."""

    def __init__(self, root: Path, name: str, operation: Operation, seed: int) -> None:
        """Prepare the operation, make a clean call, and a second one, which must change nothing."""
        self.root, self.operation, self.seed = root / f"{name}-{seed}", operation, seed
        self.root.mkdir()
        self._cases = 0
        said = answer(self._prepared, seconds=600)
        self._kept = Kept(said["folder"], tuple(said["tables"]), tuple(map(tuple, said["views"])))
        self.sites, self.seconds = answer(lambda: traced(self.operation.act(self.root, seed)), seconds=600)
        if lacking := set(self.operation.passes) - set(self.sites):
            raise AssertionError(
                f"{name} {seed}: a clean call passes no site {sorted(lacking)}, so its cases show nothing"
            )
        self.expected = answer(partial(view, self.root), seconds=600)
        self.call()
        if (again := verdict(self.expected, answer(partial(view, self.root), seconds=600))) != "ok":
            raise AssertionError(f"{name}: a second clean call changes the tables: {again}")

    def _prepared(self) -> dict[str, Any]:
        empty(self.root / "ground")
        self.operation.prepare(backend(self.root), self.seed)
        return {**asdict(Kept.of(self.root / "kept"))}

    def call(self) -> None:
        """Call the operation in a process of its own."""

        def work() -> None:
            for _ in self.operation.act(self.root, self.seed):
                pass

        answer(work, seconds=600)

    def _call_again(self) -> None:
        """Call the operation, and once more if the statement that the dead client had sent has just won (exit code 75)."""
        try:
            self.call()
        except RuntimeError as error:
            if "NotNowError" not in str(error):
                raise
            self.call()

    def kill(self, name: str, site: str) -> Outcome:
        """Kill the operation at a site, call it again, and compare."""
        self._cases += 1
        where = self.root / f"case-{self._cases}"
        answer(lambda: self._kept.put_back(where), seconds=600)
        share = random.Random(f"{name} {self.seed} {site}").random()
        after_s = share * self.seconds.get(site, 0)
        child = fork(lambda mark: die_at(self.operation.act(self.root, self.seed), site, mark, after_s))
        status = child.finish(600)
        if (status, child.said.decode()) != (-signal.SIGKILL, site):
            return Outcome(name, self.seed, site, f"not reached: {status} {child.said.decode()[-300:]}")
        try:
            self._call_again()
            said = verdict(self.expected, answer(partial(view, self.root), seconds=600))
        except RuntimeError as error:
            said = in_a_line(str(error))
        shutil.rmtree(where, ignore_errors=True)
        return Outcome(name, self.seed, site, said)


def suite(settings: Settings) -> Figures:
    """Kill clients at each site of each operation. ``quick``: at two sites of a small one."""
    figures, results = Figures("governed"), Results.of("governed", settings.results)
    operations = {"sample": SAMPLE} if settings.quick else OPERATIONS
    names = [settings.point] if settings.point in operations else list(operations)
    chosen: Callable[[str], bool] = lambda site: not settings.quick or site in QUICK  # noqa: E731
    with folder() as root, server(Path(root)):
        warm_up(Path(root), quick=settings.quick)
        for seed in SEEDS[: 1 if settings.quick else settings.seeds]:
            for name in names:
                _kill_everywhere(Path(root), name, operations[name], seed, results, settings, chosen)
    for (name, seed, site), said in results.said.items():
        figures.count(said, f"{name} {seed} {site}")
    figures.more = {**results.extent(), "during": sum(DURING in site for _, _, site in results.said)}
    return figures


def _kill_everywhere(
    root: Path,
    name: str,
    operation: Operation,
    seed: int,
    results: Results,
    settings: Settings,
    chosen: Callable[[str], bool],
) -> None:
    known = results.sites.get((name, seed))
    if known is not None and all(results.knows(name, seed, site) for site in known if chosen(site)):
        return
    ground = Ground(root, name, operation, seed)
    results.note_sites(name, seed, ground.sites)
    left = [site for site in ground.sites if chosen(site) and not results.knows(name, seed, site)]
    results.keep((ground.kill(name, site) for site in left), settings.say)
    settings.say(f"governed: {name} {seed} done, {len(results.said)} cases known")


def warm_up(root: Path, *, quick: bool) -> None:
    """Import what the cases import, so that their processes need not. ``quick``: only the client, which takes longest."""

    def work() -> None:
        if quick:
            connected().range(1).toArrow()
            return
        empty(root / "warm")
        tables = backend(root)
        tables.land_scene(0, through=2)
        tables.run(MAIN, 2)
        view(root)

    preload(work)
