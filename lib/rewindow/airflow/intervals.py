"""What of time a DAG run stands for: its interval's end, or what was asked for by hand. Airflow's context is plain data here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

THROUGH = "through"
"""The DAG param that says where a manual run stops."""

TIME = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])([T ][0-2]\d(:[0-5]\d){1,2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})?)?"
"""A time as a param takes it: ISO 8601, a day or down to fractions of a second; without a zone it is UTC."""


def through_of(context: Mapping[str, Any]) -> str | None:
    """Return where a DAG run stops, in ISO 8601: its param ``through``, else its interval's end, else None (no bound).

    A run that was triggered by an asset, or without a logical date, has no interval.
    """
    asked = (context.get("params") or {}).get(THROUGH)
    if asked:
        return str(asked)
    end = context.get("data_interval_end")
    return None if end is None else str(end.isoformat())


def interval_of(context: Mapping[str, Any]) -> list[str] | None:
    """Return a DAG run's interval, ``[start, end]``; None if it has none."""
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    return None if start is None or end is None else [start.isoformat(), end.isoformat()]


def unread(context: Mapping[str, Any]) -> list[str]:
    """Return the names in what a DAG run was triggered with that are no params of its DAG: a slip, most often."""
    given = getattr(context.get("dag_run"), "conf", None) or {}
    known = getattr(context.get("dag"), "params", None) or {}
    return sorted(name for name in given if name not in known)
