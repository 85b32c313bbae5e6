"""Run tasks of `RewindowJobRunOperator` against the workspace in the environment, and print their results."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from airflow.sdk.exceptions import TaskDeferred

from rewindow.airflow.assets import catalog_asset
from rewindow.airflow.job_runs import RewindowJobRunOperator


class Events(dict):  # the outlets' events, as far as they are used
    def __missing__(self, asset: Any) -> Any:
        self[asset] = SimpleNamespace(extra={})
        return self[asset]


def main(plays: list[dict[str, Any]]) -> list[dict[str, Any]]:
    said, runs = [], 0
    for number, one in enumerate(plays):
        warned: list[str] = []
        task = RewindowJobRunOperator(
            task_id=f"run{number}",
            databricks_job="hourly_departures",
            conn_id=one.get("conn_id"),
            poll_s=0.01,
            deferrable=one.get("defers", False),
            outlets=[catalog_asset(table) for table in one.get("tables", ())],
        )
        task.log.warning = lambda text, *of, to=warned, **_: to.append(text % of)
        events = Events()
        interval = {f"data_interval_{end}": datetime.fromisoformat(one["through"]) for end in ("start", "end")}
        params = {"params": {"through": one["through"]}}
        if one.get("no_interval"):
            params, interval = {"params": {"through": None}}, {}
        if one.get("anew"):
            runs += 1
        # As Airflow sets them: `clear_number` counts the clears of a DAG run, `try_number` all tries.
        ti = SimpleNamespace(
            dag_id="jobs", run_id=f"run{runs}", task_id="run", map_index=-1, try_number=one.get("try", 1), stats_tags={}
        )
        dag_run = SimpleNamespace(start_date=one.get("started"), clear_number=one.get("clears", 0))
        context = {
            **params,
            **interval,
            "task": SimpleNamespace(params=params["params"]),
            "outlet_events": events,
            "ti": ti,
            "dag_run": dag_run,
        }
        try:
            defers = deferred(task, context, stops=one.get("stops", False)) if one.get("defers") else None
            result = asyncio.run(defers) if defers else task.execute(context)
            told = {asset.name: event.extra for asset, event in events.items()}
            warned = [line for line in warned if "event" in line]
            links = {link.name: link.get_link(task, ti_key=None) for link in task.operator_extra_links}
            said.append({"links": links, "result": result, "events": told, "warned": warned})
        except Exception as error:  # noqa: BLE001 - whatever it is, the test looks at it
            said.append({"error": type(error).__name__, "message": str(error)})
    return said


async def deferred(task: RewindowJobRunOperator, context: dict[str, Any], *, stops: bool) -> Any:
    try:
        task.execute(context)
    except TaskDeferred as waiting:
        path, given = waiting.trigger.serialize()
        assert path == "rewindow.airflow.job_runs.JobRunTrigger"
        trigger = type(waiting.trigger)(**given)
        if stops:  # as if a person marks the task as failed while it waits
            return await trigger.on_kill()
        async for event in trigger.run():
            return {**getattr(task, waiting.method_name)(context, event.payload), "deferred": True}
    raise AssertionError("the task did not defer")


if __name__ == "__main__":
    print("\n" + json.dumps(main(json.loads(sys.argv[1]))))
