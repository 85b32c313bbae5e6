"""A catalog of governed tables on one Spark Connect server, which is put back for each case as it was.

The server outlives the processes that are killed, as in a workspace: what they had asked for goes on. Tables keep their names,
which the ledger contains, and get a new folder for each case, so a late write of an earlier case meets nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from rewindow.tables.governed import ledger
from tests.conftest import ROOT
from tests.daemons import connect_server
from tests.protocol.backends import Backend, of_catalog

HOME = "spark_catalog.crash"
SCHEMAS = (HOME, f"{HOME}_out")
ADDRESS = "SPARK_REMOTE"
MEMORY = "4g"
"""What a server needs so that it is as fast after 200 cases as at the first."""
INLINE = 10_000
"""More records than any operation has, so the process of the command executes all of them."""


@contextmanager
def server(folder: Path) -> Iterator[None]:
    """Start a server; processes that are forked in the block connect to it."""
    with connect_server(
        folder / "server", Path(sys.executable), imports=[ROOT, ROOT / "lib"], memory=MEMORY
    ) as address:
        os.environ[ADDRESS] = address
        try:
            yield
        finally:
            del os.environ[ADDRESS]


@cache
def connected() -> SparkSession:
    """Return this process's session. A process that forks must not have one."""
    return SparkSession.builder.remote(os.environ[ADDRESS]).create()


def backend(root: Path, *, by_workers: bool = False) -> Backend:
    """Return the tables as they are now. ``by_workers``: Spark's workers execute the tasks of runs and landings.

    Folds of ledgers are stored after each second append, so that processes die there, too.
    """
    ledger.EVERY = 2
    return of_catalog(connected(), root, HOME, most_here=0 if by_workers else INLINE)


@dataclass(frozen=True)
class Kept:
    """The tables of a catalog: a copy of their folders, and the views with their texts."""

    folder: str
    tables: tuple[str, ...]
    views: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, folder: Path) -> Kept:
        """Copy what the schemas have now into a folder."""
        spark, tables, views = connected(), [], []
        for schema in SCHEMAS:
            for name in _views(schema):
                (row,) = spark.sql(f"SHOW CREATE TABLE {name}").collect()
                views.append((name, row[0]))
            for name in _tables(schema):
                (detail,) = spark.sql(f"DESCRIBE DETAIL {name}").collect()
                shutil.copytree(detail["location"].removeprefix("file:"), folder / name)
                tables.append(name)
        return cls(str(folder), tuple(tables), tuple(views))

    def put_back(self, folder: Path) -> None:
        """Let the schemas have these tables and nothing else, with their files in a new folder."""
        empty(folder / "new")
        spark = connected()
        for name in self.tables:
            shutil.copytree(f"{self.folder}/{name}", folder / name)
            spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{folder / name}'")
        for _, text in self.views:
            spark.sql(text)


def empty(folder: Path) -> None:
    """Let both schemas be empty; their new tables will be in a folder."""
    spark = connected()
    for schema in SCHEMAS:
        spark.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        spark.sql(f"CREATE SCHEMA {schema} LOCATION '{folder / schema}'")


def _tables(schema: str) -> list[str]:
    views = _views(schema)
    found = [f"{schema}.{row['tableName']}" for row in connected().sql(f"SHOW TABLES IN {schema}").collect()]
    return [name for name in found if name not in views]


def _views(schema: str) -> list[str]:
    return [f"{schema}.{row['viewName']}" for row in connected().sql(f"SHOW VIEWS IN {schema}").collect()]
