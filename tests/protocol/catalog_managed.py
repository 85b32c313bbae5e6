"""A governed job on catalog-managed tables, in a process of its own. Prints what it found as JSON.

The catalog is a stand-in: `InMemoryCommitCoordinator`, which Delta ships for its own tests and only serves a JVM with
`SPARK_TESTING` set. It does what a catalog does to a table: commits are staged, ratified in memory, and published every few
versions. It is not a Unity Catalog server, of which no build could be had.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from rewindow.control.branch import branch, promote, rewind
from rewindow.control.ledger_steps import drive
from rewindow.engine.spark.session import local_session
from rewindow.errors import RewindowError
from rewindow.tables.delta.open_table import open_table
from tests.conftest import ROOT
from tests.crash import scene
from tests.protocol import backends
from tests.protocol.test_governed_sources import add, feed, look

SEED, PUBLISHED_EVERY = 3, 4


def main(root: Path) -> None:
    """Land, run, rewind, branch and promote on catalog-managed tables below a folder, and on files."""
    spark = local_session(cores=2, python_path=[ROOT])
    try:
        _stand_in(spark)
        governed = backends.through_spark(spark, root, most_here=100_000)
        governed.land_scene(SEED)
        found = {"main": governed.run("main", 2, scene.LANDINGS)}
        tables = {path.parent.name: _described(path.parent) for path in root.rglob("_delta_log")}
        drive(branch(scene.JOB, "fix", governed.tables(), at="main/1"))
        governed.run("fix", scene.LANDINGS)
        drive(rewind(scene.JOB, "main", "main/1", governed.tables()))
        drive(promote(scene.JOB, "fix", governed.job("main").binding, governed.tables()))
        found["promoted"] = governed.outputs("main")
        source = _looks_at_a_source(spark, root, governed)
    finally:
        spark.stop()
    files = backends.direct(root / "files")
    files.root.mkdir()
    files.land_scene(SEED)
    expected = files.run("main", scene.LANDINGS)
    Path(sys.argv[2]).write_text(json.dumps({**found, "tables": tables, "source": source, "expected": expected}))


def _stand_in(spark: SparkSession) -> None:
    package = spark._jvm.org.apache.spark.sql.delta.coordinatedcommits  # type: ignore[union-attr]
    coordinator = package.InMemoryCommitCoordinatorBuilder(PUBLISHED_EVERY)
    package.CatalogOwnedCommitCoordinatorProvider.registerBuilder("spark_catalog", coordinator)
    spark.conf.set("spark.databricks.delta.properties.defaults.feature.catalogManaged", "supported")


def _described(table: Path) -> dict[str, Any]:
    """Return the last published and the last staged version of a table, and what direct access says."""
    log = table / "_delta_log"
    published = [int(commit.stem) for commit in log.glob("*.json")]
    staged = [int(commit.name[:20]) for commit in (log / "_staged_commits").glob("*.json") if commit.name[0] == "0"]
    try:
        open_table(str(table))
        says = ""
    except RewindowError as error:
        says = f"{error.exit_code}: {error}"
    return {"published": max(published), "staged": max(staged, default=0), "says": says}


def _looks_at_a_source(spark: SparkSession, root: Path, governed: backends.Backend) -> list[int]:
    """Return the versions of a source table at which three looks find new rows."""
    spark.sql(f"CREATE SCHEMA spark_catalog.raw_managed LOCATION '{root / 'raw'}'")
    spark.sql("CREATE TABLE spark_catalog.raw_managed.clicks (user STRING, t BIGINT, got BIGINT, x BIGINT) USING delta")
    versions: list[int] = []
    config, position = feed("raw_managed.clicks"), None
    for number in range(3):
        add(spark, "raw_managed.clicks", ("ann", number, number, number))
        seen = look(governed, config, position)
        position, versions = seen.position, [*versions, *([seen.version] if seen.fresh else [])]
    return versions


if __name__ == "__main__":
    main(Path(sys.argv[1]))
