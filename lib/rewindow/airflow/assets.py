"""Output tables and feeds as Airflow assets. The DAGs of jobs update them, and other DAGs can be scheduled on them.

The name of an asset contains the location of its table, because two projects, or two targets with different warehouses, may have
tables of the same name. Projects and targets that share a warehouse share its assets.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from airflow.sdk import Asset

from rewindow.airflow.task_results import FEED, TABLE
from rewindow.config.load import find_project, load_target, location_of

_GROUP = "rewindow"
_KEPT = "/:@"  # in URIs


def table_asset(table: str, project: str | os.PathLike[str], target: str = "local") -> Asset:
    """Return the asset of an output table: ``table_asset("shop.daily_orders", "/opt/shop")``.

    ``project`` and ``target`` are those of `make_dags`. The ``extra`` of its events holds: table, version (Delta's), run, epochs,
    rows, digest, watermark_ms, the interval, and after a Databricks job run also the ``run_id``, ``url`` and ``state`` of that
    run. There is no event if nothing was done. Raises `ConfigError` (78) for an unknown project or target.
    """
    return TableAssets(find_project(Path(project).absolute()), target).of(table)


def feed_asset(feed: str, project: str | os.PathLike[str], target: str = "local") -> Asset:
    """Return the asset of a feed's logs: ``feed_asset("orders", "/opt/shop")``.

    The ``extra`` of its events holds: feed, landings, rows, quarantined, watermark_ms and the interval. There is no event if
    nothing was landed. Raises `ConfigError` (78) for an unknown project or target.
    """
    return TableAssets(find_project(Path(project).absolute()), target).of_feed(feed)


class TableAssets:
    """The assets of a project and target. The target's file is read once. Raises `ConfigError` (78) for an unknown target."""

    def __init__(self, root: Path, target: str) -> None:
        self._catalog: str | None = None
        self._schema = ""
        if "{{" in target:  # for a template, the target is known only when a task runs
            self._warehouse = f"{root}/{target}"
            return
        config = load_target(root, target)
        self._warehouse = location_of(root, config.warehouse)
        if config.catalog is not None:
            self._catalog, _, self._schema = config.catalog.partition(".")

    def of(self, table: str) -> Asset:
        """Return the asset of an output table. ``table``: its name in the job's file."""
        if self._catalog is not None:
            return catalog_asset(table if table.count(".") == 2 else f"{self._catalog}.{table}")
        return _at(self._warehouse, table)

    def of_feed(self, feed: str) -> Asset:
        """Return the asset of a feed."""
        if self._catalog is not None:
            where, uri = f"{self._catalog}.{self._schema}", f"delta://{self._catalog}/{self._schema}/logs/{feed}"
        else:
            where = _uri_of(self._warehouse)
            uri = f"{where}/logs/{feed}"
        return Asset(name=f"feed {feed} in {where}", uri=uri, group=_GROUP, extra={FEED: feed})


def catalog_asset(table: str) -> Asset:
    """Return the asset of a table in a catalog: ``catalog_asset("main.shop.daily_orders")``. For job runs on Databricks."""
    return Asset(name=table, uri=f"delta://{table.replace('.', '/')}", group=_GROUP, extra={TABLE: table})


def _at(warehouse: str, table: str) -> Asset:
    where = _uri_of(warehouse)
    uri = f"{where}/{table.replace('.', '/')}"
    return Asset(name=f"{table} in {where}", uri=uri, group=_GROUP, extra={TABLE: table})


def _uri_of(warehouse: str) -> str:
    return quote(warehouse if "://" in warehouse else f"file://{warehouse}", safe=_KEPT).rstrip("/")
