"""What a DAG run asks for: the time up to which it processes (a param, or the end of its interval), and its other params.

Messages of commands suggest commands and options. But people who read a task's log have no command line. So a task adds to a
message which params set these options, and which options a command on a worker needs. This module does not import Airflow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, Final

THROUGH = "through"
"""The DAG param with the time at which a run stops."""
ACCEPT_CHANGES = "accept_changes"
"""The DAG param with which a run resumes from a checkpoint of different code."""
REPLAN, TAKEOVER = "replan", "takeover"
"""The DAG params with which a run discards the plan of an unfinished attempt, or fences an attempt that is still alive."""
TIME = (
    "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"([T ][0-2][0-9](:[0-5][0-9]){1,2}(\.[0-9]+)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
"""Pattern of a time in a param: ISO 8601, from a day down to fractions of a second. A time without zone is in UTC."""
END = r"$(?!\n)"
"""The end of a param's pattern, for Airflow and for browsers. In Python, ``$`` alone also matches before a last line break."""
BACKFILL_SUFFIX: Final = "__backfill"
"""The end of the id of a job's backfill DAG."""
MAINTENANCE: Final = "maintenance"
"""A tag of the DAG that drops branches and cleans up. This DAG belongs to no single job, so it has no backfill DAG."""
_OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def through_of(context: Mapping[str, Any]) -> str | None:
    """Return the time at which a DAG run stops (ISO 8601): its param ``through``, or the end of its interval; None without both.

    A DAG run that was triggered by an asset, or that has no logical date, has no interval.
    """
    through = _param(context, THROUGH)
    if through:
        return str(through)
    end = context.get("data_interval_end")
    return None if end is None else str(end.isoformat())


def is_set(context: Mapping[str, Any], param: str) -> bool:
    """Return whether a param of a DAG run, such as `ACCEPT_CHANGES`, is set. False if the DAG does not have this param."""
    return bool(_param(context, param))


def _param(context: Mapping[str, Any], name: str) -> Any:
    """Return a param of a DAG run; None if its DAG and task do not declare it. Nobody has checked the value of such a param."""
    return (context.get("params") or {}).get(name) if name in _declared(context) else None


def _declared(context: Mapping[str, Any]) -> set[str]:
    """Return the params that a DAG run's DAG and task declare. The context has more params: every key of the DAG run's conf."""
    return {name for of in ("dag", "task") for name in getattr(context.get(of), "params", None) or ()}


def lands_through(context: Mapping[str, Any], last_due: Callable[[Any], datetime | None]) -> str | None:
    """Return the time through which a DAG run lands its feed: where the run stops or, in a backfill, a later time.

    In a backfill, the DAG run lands everything through ``last_due`` of its DAG, which is the end of the last interval that is
    over now. So one DAG run lands for the whole backfill, and the others find nothing to land. Each interval still becomes a
    landing of its own.
    """
    through = through_of(context)
    if through is None or is_set(context, THROUGH) or getattr(context.get("dag_run"), "run_type", None) != "backfill":
        return through
    due = last_due(context.get("dag"))
    return due.isoformat() if due is not None and due > context["data_interval_end"] else through


def is_retry(context: Mapping[str, Any]) -> bool:
    """Return whether this is a later try of the task. An earlier try may have done the work."""
    return getattr(context.get("ti"), "try_number", 1) > 1


def work_of(context: Mapping[str, Any]) -> list[object]:
    """Return values that identify a task's work.

    They are equal in all tries of the task, but differ between DAG runs and after a clear.
    """
    ti, run = context["ti"], context["dag_run"]
    # If a DAG run is deleted, the next one for the same interval gets the same id. So its start is included, too.
    return [ti.dag_id, ti.run_id, ti.task_id, ti.map_index, str(run.start_date), int(run.clear_number or 0)]


def interval_of(context: Mapping[str, Any]) -> list[str] | None:
    """Return a DAG run's interval ``[start, end]`` (ISO 8601); None if it has none."""
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    return None if start is None or end is None else [start.isoformat(), end.isoformat()]


def unread(context: Mapping[str, Any]) -> list[str]:
    """Return the keys of a DAG run's conf that are not params of its DAG. Such keys are usually typos."""
    given = getattr(context.get("dag_run"), "conf", None) or {}
    return sorted(given.keys() - _declared(context))


def in_a_dag(message: str, *, params: Collection[str], where: str = "", dag_id: str = "") -> str:
    """Return a command's message, and after it how to follow its advice in a DAG.

    Args:
        message: A command's error message.
        params: The DAG's params.
        where: The options of commands on the worker, ``--project /opt/shop --target local``; empty if they run elsewhere.
        dag_id: The DAG's id if `make_dags` made it, so that there is a backfill DAG, too; otherwise empty.
    """
    lines = [message]
    options = {option.removeprefix("--").replace("-", "_") for option in _OPTION.findall(message)}
    if given := sorted(options & set(params)):
        lines.append(f"Params of this DAG: {', '.join(given)}.")
    if dag_id and "`rewindow backfill" in message:
        recomputing = dag_id.removesuffix(BACKFILL_SUFFIX) + BACKFILL_SUFFIX
        lines.append(f"The DAG {recomputing} recomputes on a branch, and asks before it publishes.")
    if where and (options or "`rewindow " in message):
        lines.append(f"A command on a worker needs {where}.")
    return "\n".join(lines)
