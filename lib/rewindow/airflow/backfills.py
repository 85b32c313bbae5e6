"""The DAG that recomputes a job's past: branch -> backfill -> verify -> diff -> wait for approval -> promote.

Nothing that is published changes before somebody approves. The schedule goes on beside it: `promote` lets the branch
catch up. If the branch came out equal to what is published, there is nothing to promote and nobody is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pendulum
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, Param, task
from airflow.sdk.exceptions import AirflowFailException

from rewindow.airflow.assets import table_asset
from rewindow.airflow.exit_codes import DIFFERENT
from rewindow.airflow.intervals import TIME
from rewindow.airflow.operators import RewindowOperator
from rewindow.airflow.single_writer import one_writer
from rewindow.airflow.watermarks import epoch_ms, is_time
from rewindow.config.job import JobConfig

_PLACE = rf"^({TIME}|\d+|[A-Za-z_][A-Za-z0-9_-]*/\d+)$"
"""An event time, a landing's number or a run's name, as `rewindow backfill` takes them."""

PARAMS = {
    "from": Param(
        type="string",
        pattern=_PLACE,
        title="From",
        description="An event time, a landing's number or a run (main/3); rounded down to a run's end.",
    ),
    "to": Param(
        None,
        type=["null", "string"],
        pattern=_PLACE,
        title="To",
        description="The same, inclusive; default: as far as main.",
    ),
    "branch": Param(
        None,
        type=["null", "string"],
        pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,99}$",
        title="Branch",
        description="The branch's name, new or begun; default: the DAG run's.",
    ),
}
_BRANCH = "{{ ti.xcom_pull(task_ids='branch') }}"
_FROM = "--from={{ params['from'] }}"
_TO = "{{ '--to=' ~ params['to'] if params['to'] else '' }}"
_BODY = """\
{{% set found = ti.xcom_pull(task_ids='diff') or {{}} -%}}
The branch **{branch}** of job **{job}** differs from what is published:

| output | equal | different | only published | only in the branch |
| --- | --- | --- | --- | --- |
{{% for name, of in found.items() if of is mapping -%}}
| {{{{ name }}}} | {{{{ of.equal }}}} | {{{{ of.different }}}} | {{{{ of.only_first }}}} | {{{{ of.only_second }}}} |
{{% endfor %}}
*Approve* makes the branch the published branch, in one commit for each table. *Reject* leaves all as it is.

The first differences:

```json
{{{{ found | tojson(indent=2) }}}}
```
"""


def backfill_dag(job: JobConfig, place: Mapping[str, Any], *, pool: str, default_args: Mapping[str, Any]) -> DAG:
    """Return a job's backfill DAG. It is triggered by hand: from, to and branch are its params."""
    name, writer = job.job, one_writer(pool, default_args)
    with DAG(
        dag_id=f"{name}__backfill",
        schedule=None,
        start_date=pendulum.datetime(2000, 1, 1),
        catchup=False,
        max_active_runs=1,
        default_args=dict(default_args),
        params=PARAMS,
        tags=["rewindow", "backfill", job.feed],
        doc_md=__doc__,
    ) as dag:
        branch = _branch()
        backfill = RewindowOperator(
            task_id="backfill",
            arguments=["backfill", name, _FROM, _TO, "--branch", _BRANCH],
            **place,
            **writer,
        )
        verify = RewindowOperator(task_id="verify", arguments=["verify", name, "--branch", _BRANCH], **place, **writer)
        diff = RewindowOperator(
            task_id="diff", arguments=["diff", name, "main", _BRANCH], accepts={DIFFERENT}, **place, **writer
        )
        approve = ApprovalOperator(
            task_id="approve", subject=f"Publish the backfill of {name}?", body=_BODY.format(job=name, branch=_BRANCH)
        )
        promote = RewindowOperator(
            task_id="promote",
            arguments=["promote", name, _BRANCH],
            outlets=[table_asset(output.table) for output in job.outputs.values()],
            **place,
            **writer,
        )
        branch >> backfill >> verify >> diff >> _is_different(diff.output) >> approve >> promote
    return dag


@task(task_id="branch")
def _branch(params: Any = None, run_id: Any = None) -> str:
    """Return the branch's name, having looked at what was asked."""
    start, end = params["from"], params["to"]
    if end and is_time(start) and is_time(end) and epoch_ms(start) > epoch_ms(end):
        raise AirflowFailException(f"from {start} to {end}: the end lies before the start")
    return str(params["branch"] or "backfill_" + re.sub(r"[^A-Za-z0-9]+", "_", run_id))


@task.short_circuit(task_id="is_different")
def _is_different(found: dict[str, Any]) -> bool:
    """Whether there is anything to promote."""
    return bool(found["exit_code"] == DIFFERENT)
