"""What a task does with an exit code: go on, or raise what makes Airflow retry or fail at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from rewindow.airflow.exit_codes import LIMIT, Next, meaning, what_next

_LIMITS = "rewindow_limits"
"""How often the task has ended with 71, in its state store."""


def raise_for_exit(context: Any, code: int | None, said: str, *, accepts: Collection[int] = ()) -> None:
    """Return if the work is done. Raises `AirflowException` for a retry, `AirflowFailException` to fail at once.

    ``said`` is what the command said about it, shown before the meaning of its code.
    """
    store = context.get("task_state_store")
    limits = int((store.get(_LIMITS) if store else None) or 0)
    step = what_next(code, limits_before=limits, accepts=accepts)
    if step is Next.DONE:
        return
    message = f"{said}\n{meaning(code)}".strip()
    if step is Next.FAIL:
        raise AirflowFailException(message)
    if code == LIMIT and store:
        store.set(_LIMITS, limits + 1)
    raise AirflowException(message)
