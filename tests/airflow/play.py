"""Execute DAG runs with Airflow's `dag.test`, in a separate process: `python play.py '[{"dag": ...}]'`.

Each run has ``dag`` and may have ``date`` (the logical date), ``conf`` and ``skip`` (a pattern of tasks to mark as successful).
The last line of output is JSON: for each run its state, the states and tries of its tasks, their extra links, and the
events of tables and of feeds.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main(plays: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [play(parsed(one["dag"]), one) for one in plays]


def parsed(name: str) -> Any:
    """Return a DAG that no run has used: `dag.test` changes its params and templates in place."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag()
    if bag.import_errors:
        raise SystemExit(str(bag.import_errors))
    return bag.dags[name]


def play(dag: Any, one: dict[str, Any]) -> dict[str, Any]:
    import pendulum
    from airflow.models.asset import AssetEvent
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    date = {"logical_date": pendulum.parse(one["date"])} if "date" in one else {}
    with create_session() as session:
        before = len(session.scalars(select(AssetEvent)).all())
    run = dag.test(run_conf=one.get("conf"), mark_success_pattern=one.get("skip"), **date)
    with create_session() as session:
        events = session.scalars(select(AssetEvent).order_by(AssetEvent.id)).all()[before:]
        told = [{"asset": event.asset.name, "extra": event.extra} for event in events]
        feeds = [one for one in told if one["asset"].startswith("feed ")]
        kept = session.scalars(select(XComModel).where(XComModel.dag_id == run.dag_id, XComModel.run_id == run.run_id))
        links = {row.task_id: row.value for row in kept if row.key == "_link_ReportLink" and row.value}
    tasks = {ti.task_id: {"state": ti.state, "tries": ti.try_number} for ti in run.get_task_instances()}
    return {
        "state": run.state,
        "tasks": tasks,
        "events": [one for one in told if one not in feeds],
        "feeds": feeds,
        "reports": links,
    }


if __name__ == "__main__":
    print("\n" + json.dumps(main(json.loads(sys.argv[1])), default=str))
