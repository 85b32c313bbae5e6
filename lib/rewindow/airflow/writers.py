"""One writer at a time, as Airflow can say it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any


def one_writer(pool: str) -> dict[str, Any]:
    """Return the arguments of a task that writes: its pool, no second one of it in any run of its DAG, and its retries."""
    return {
        "pool": pool,
        "max_active_tis_per_dag": 1,
        "retries": 5,
        "retry_delay": timedelta(seconds=30),
        "retry_exponential_backoff": True,
        "max_retry_delay": timedelta(minutes=10),
    }
