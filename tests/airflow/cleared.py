"""Run the task of the DAG `jobs` in two real DAG runs without an interval, then again after a retry and after a clear.

The last line of output is JSON: what the task returned each time.
"""

from __future__ import annotations

import json
from typing import Any

from airflow.models.taskinstance import TaskInstance, clear_task_instances
from airflow.sdk.definitions.dag import _run_task
from airflow.utils.session import create_session
from sqlalchemy import select

from tests.airflow.play import parsed


def main() -> list[Any]:
    dag = parsed("jobs")
    told = []
    for _ in range(2):
        run = dag.test(logical_date=None)  # deletes the DAG run before
        told.append(result())
    for clears in (False, True):
        with create_session() as session:
            (ti,) = session.scalars(select(TaskInstance).where(TaskInstance.run_id == run.run_id))
            if clears:
                clear_task_instances([ti], session)
            else:
                ti.prepare_db_for_next_try(session)
            ti.try_number += 1
        _run_task(ti=ti, task=dag.get_task("run"))
        told.append(result())
    return told


def result() -> Any:
    with create_session() as session:
        (ti,) = session.scalars(select(TaskInstance).where(TaskInstance.dag_id == "jobs"))
        return ti.xcom_pull(task_ids="run")


if __name__ == "__main__":
    print("\n" + json.dumps(main()))
