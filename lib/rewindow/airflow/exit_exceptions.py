"""Turn exit codes into exceptions that make Airflow retry a task or fail it at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from rewindow.airflow.dag_run import MAINTENANCE, in_a_dag, is_retry
from rewindow.contracts.exit_codes import Next, meaning, what_next
from rewindow.errors import visible_lines


def raise_for_exit(
    context: Any, code: int | None, reason: str, *, accepts: Collection[int] = (), where: str = ""
) -> None:
    """Return if the work is done. Raises `AirflowException` to retry, `AirflowFailException` to fail at once.

    ``reason`` is the command's own message. The error's text is this message, then advice for a DAG, then the meaning of the
    exit code. ``accepts`` are further exit codes that count as success. ``where`` has the options that a command on a worker
    needs.
    """
    step = what_next(code, limits_before=int(is_retry(context)), accepts=accepts)
    if step is Next.DONE:
        return
    dag = context.get("dag")
    made = dag.dag_id if dag is not None and "rewindow" in dag.tags and MAINTENANCE not in dag.tags else ""
    advice = in_a_dag(reason, params=context.get("params") or (), where=where, dag_id=made)
    message = visible_lines(f"{advice}\n{meaning(code)}".strip())
    if step is Next.FAIL:
        raise AirflowFailException(message)
    raise AirflowException(message)
