"""Airflow settings that allow one writer at a time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

_RETRIES = {
    "retries": 5,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=10),
}


def one_writer(pool: str, default_args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a task that writes: its pool, at most one instance per DAG, and its retries.

    Omits retry settings that ``default_args`` has, because a task's own arguments would override them.
    """
    own = {name: value for name, value in _RETRIES.items() if name not in default_args}
    return {"pool": pool, "max_active_tis_per_dag": 1, **own}
