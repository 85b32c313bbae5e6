"""Execute DAG runs with Airflow's `dag.test`, in a separate process: `python play.py '[{"dag": ...}]'`.

Each run has ``dag`` and may have ``date`` (the logical date), ``conf`` and ``skip`` (a pattern of tasks to mark as successful).
The last line of output is JSON: for each run its state, the states and tries of its tasks, and the asset events.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main(plays: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag()
    if bag.import_errors:
        raise SystemExit(str(bag.import_errors))
    return [play(bag.dags[one["dag"]], one) for one in plays]


def play(dag: Any, one: dict[str, Any]) -> dict[str, Any]:
    import pendulum
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    date = {"logical_date": pendulum.parse(one["date"])} if "date" in one else {}
    with create_session() as session:
        before = len(session.scalars(select(AssetEvent)).all())
    run = dag.test(run_conf=one.get("conf"), mark_success_pattern=one.get("skip"), **date)
    with create_session() as session:
        events = session.scalars(select(AssetEvent).order_by(AssetEvent.id)).all()[before:]
        told = [{"asset": event.asset.name, "extra": event.extra} for event in events]
    tasks = {ti.task_id: {"state": ti.state, "tries": ti.try_number} for ti in run.get_task_instances()}
    return {"state": run.state, "tasks": tasks, "events": told}


if __name__ == "__main__":
    print("\n" + json.dumps(main(json.loads(sys.argv[1])), default=str))
