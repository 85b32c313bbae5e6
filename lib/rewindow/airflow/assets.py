"""Output tables as Airflow's assets: what a job's DAG updates, and what other DAGs are scheduled by."""

from __future__ import annotations

from airflow.sdk import Asset


def table_asset(table: str) -> Asset:
    """Return the asset of an output table, named as in the job's file: ``table_asset("flights.hourly_departures")``.

    Its events carry in ``extra``: table, version (Delta's), run, epochs, rows, digest, watermark_ms, the interval, and
    after a Databricks job run its ``run_id``, ``url`` and ``state``.
    """
    return Asset(name=table, uri=f"delta://{table.replace('.', '/')}", group="rewindow")
