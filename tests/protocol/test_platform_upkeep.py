"""OPTIMIZE and VACUUM between any two steps change no result.

VACUUM has a retention of zero. On files, stores are left out, because they are restored from files as they were staged. And
VACUUM deletes only what has left a table there (deltalake's default), because a run's staged files are in no table yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rewindow.control.ledger_steps import drive
from rewindow.control.plan.spec import MAIN
from rewindow.tables.governed.warehouse import CatalogTables
from tests.crash import scene
from tests.protocol import backends
from tests.protocol.backends import SEED, Backend

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SETTINGS = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}
"""VACUUM lists files with as many Spark tasks as the second says: by default 10,000, which take half a minute for each table."""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the outputs of one clean run on the backend of files."""
    files = backends.direct(tmp_path_factory.mktemp("clean"))
    files.land_scene(SEED)
    return files.run("clean", scene.LANDINGS)


@pytest.fixture
def upkeep(backend: Backend, spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """Return what merges and deletes the files of all tables that have changed since the last call."""
    if not isinstance(backend.tables(), CatalogTables):
        yield lambda _step: _of_files(backend.root)
        return
    seen: dict[Path, int] = {}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield lambda _step: _in_catalog(spark, backend.root, seen)
    for name in SETTINGS:
        spark.conf.unset(name)


def _in_catalog(spark: SparkSession, root: Path, seen: dict[Path, int]) -> None:
    for log in sorted(root.glob("*/*/_delta_log")):
        if _commits(log) != seen.get(log):
            table = f"spark_catalog.{log.parent.parent.name.removeprefix('spark_catalog.')}.{log.parent.name}"
            spark.sql(f"OPTIMIZE {table}")
            spark.sql(f"VACUUM {table} RETAIN 0 HOURS")
            seen[log] = _commits(log)


def _commits(log: Path) -> int:
    return sum(1 for _ in log.glob("*.json"))


def _of_files(root: Path) -> None:
    for log in root.rglob("_delta_log"):
        if "state" not in log.relative_to(root).parts:
            table = DeltaTable(log.parent)
            table.optimize.compact()
            table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def test_optimize_and_vacuum_between_any_two_steps_are_harmless(
    backend: Backend, expected: dict[str, str], upkeep: Callable[[str], None]
) -> None:
    backend.land_scene(SEED)
    for through in (1, 3):
        drive(backend.running(MAIN, through, snapshot_every=1), upkeep)
    done = drive(backend.collecting(every=1), upkeep)
    assert done.snapshots
    assert done.forgotten
    if isinstance(
        backend.tables(), CatalogTables
    ):  # files that VACUUM deleted are computed again, from state that is forgotten here
        found = drive(backend.republishing(MAIN, "output/hourly"), upkeep)
        assert (found.drift, found.repeated) == ({}, [])
    drive(backend.running(MAIN, scene.LANDINGS), upkeep)
    assert backend.outputs(MAIN) == expected
