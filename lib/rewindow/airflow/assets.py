"""Output tables as Airflow assets, which jobs' DAGs update and other DAGs can be scheduled on."""

from __future__ import annotations

from airflow.sdk import Asset


def table_asset(table: str) -> Asset:
    """Return the asset of an output table, named as in the job's file: ``table_asset("flights.hourly_departures")``.

    The ``extra`` of its events holds: table, version (Delta's), run, epochs, rows, digest, watermark_ms, the interval, and
    after a Databricks job run also its ``run_id``, ``url`` and ``state``.
    """
    return Asset(name=table, uri=f"delta://{table.replace('.', '/')}", group="rewindow")
