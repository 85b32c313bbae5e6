"""The DAG that recomputes a job's past: branch -> backfill -> verify -> diff -> wait for approval -> promote.

Published tables do not change before approval. Scheduled runs can continue meanwhile, because `promote` catches the branch
up first. If the branch equals what is published, the DAG ends without asking for approval.

Clear a failed task to repeat it after a fix: `backfill` continues its branch, or starts it over if the code has changed since.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pendulum
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowFailException

from rewindow.airflow.advice import BACKFILL as ENDING
from rewindow.airflow.assets import TableAssets
from rewindow.airflow.operators import RewindowOperator
from rewindow.airflow.params import BACKFILL, set_params
from rewindow.airflow.single_writer import one_writer
from rewindow.airflow.watermarks import epoch_ms, is_time
from rewindow.config.job import JobConfig
from rewindow.contracts.exit_codes import DIFFERENT

_BRANCH = "{{ ti.xcom_pull(task_ids='branch') }}"
_FROM = "--from={{ params['from'] }}"
_TO = "{{ '--to=' ~ params['to'] if params['to'] else '' }}"
_ACCEPTS = "{{ '--accept-changes' if params['accept_changes'] else '' }}"
_ENDS = ("dagrun_timeout", "deadline")
"""Options that would end a DAG which waits for people."""
_BODY = """\
{{% set found = ti.xcom_pull(task_ids='diff') or {{}} -%}}
Branch **{branch}** of job **{job}** differs from the published tables:

| output | equal | different | only published | only in the branch |
| --- | --- | --- | --- | --- |
{{% for name, of in found.items() if of is mapping -%}}
| {{{{ name }}}} | {{{{ of.equal }}}} | {{{{ of.different }}}} | {{{{ of.only_first }}}} | {{{{ of.only_second }}}} |
{{% endfor %}}
{{% set page = (ti.xcom_pull(task_ids='backfill') or {{}}).get('report') -%}}
{{% if page -%}}
The report {{{{ page }}}} has this comparison as a page, with samples and what changed.
{{%- else -%}}
`rewindow report {job} --branch {branch} --diff main` writes this comparison as a page, with samples and what changed.
{{%- endif %}}

*Approve* publishes the branch, in one commit per table. *Reject* changes nothing.

First differences:

{{% set text = found | tojson(indent=2) -%}}
```json
{{{{ text[:{most}] }}}}{{{{ ' ...' if text | length > {most} else '' }}}}
```
"""
_MOST_CHARACTERS = 10_000
"""Maximum length of the differences in the body of an approval, which people read in a browser."""


@dataclass(frozen=True, slots=True)
class DagLook:
    """What all DAGs of a call have in common: the beginning of their ids, their tags and options, and those of their tasks."""

    prefix: str
    tags: tuple[str, ...]
    options: Mapping[str, Any]
    default_args: Mapping[str, Any]

    def by_hand(self, name: str, tags: Sequence[str], doc: str | None) -> DAG:
        """Return a DAG, without tasks, that is triggered by hand and has one run at a time."""
        return DAG(
            dag_id=f"{self.prefix}{name}",
            schedule=None,
            start_date=pendulum.datetime(2000, 1, 1),
            catchup=False,
            max_active_runs=1,
            default_args=dict(self.default_args),
            tags=["rewindow", *tags, *self.tags],
            doc_md=doc,
            **{option: value for option, value in self.options.items() if option not in _ENDS},
        )


def backfill_dag(
    job: JobConfig,
    location: Mapping[str, Any],
    assets: TableAssets,
    look: DagLook,
    *,
    pool: str,
    approvers: Sequence[str] = (),
) -> DAG:
    """Return a job's backfill DAG, which is triggered by hand with the params `params.BACKFILL`.

    ``location`` holds the operators' arguments ``project``, ``target`` and ``executable``, ``assets`` those of the tables.
    """
    name, writer = job.job, one_writer(pool, look.default_args)
    assigned = {"assigned_users": [{"id": user, "name": user} for user in approvers]} if approvers else {}
    with look.by_hand(f"{name}{ENDING}", ["backfill", job.feed], __doc__) as dag:
        branch = _branch()
        backfill = RewindowOperator(
            task_id="backfill",
            arguments=["backfill", name, _FROM, _TO, "--branch", _BRANCH, _ACCEPTS],
            **location,
            **writer,
        )
        verify = RewindowOperator(
            task_id="verify", arguments=["verify", name, "--branch", _BRANCH], **location, **writer
        )
        diff = RewindowOperator(
            task_id="diff", arguments=["diff", name, "main", _BRANCH], accepts={DIFFERENT}, **location, **writer
        )
        approve = ApprovalOperator(
            task_id="approve",
            subject=f"Publish the backfill of {name}?",
            body=_BODY.format(job=name, branch=_BRANCH, most=_MOST_CHARACTERS),
            **assigned,
        )
        promote = RewindowOperator(
            task_id="promote",
            arguments=["promote", name, _BRANCH],
            outlets=[assets.of(output.table) for output in job.outputs.values()],
            **location,
            **writer,
        )
        branch >> backfill >> verify >> diff >> _is_different(diff.output) >> approve >> promote
    set_params(dag, BACKFILL)
    return dag


@task(task_id="branch")
def _branch(params: Any = None, run_id: Any = None) -> str:
    """Check the params and return the branch's name."""
    start, end = params["from"], params["to"]
    if end and is_time(start) and is_time(end) and epoch_ms(start) > epoch_ms(end):
        raise AirflowFailException(f"from {start} to {end}: the end is before the start")
    return str(params["branch"] or "backfill_" + re.sub(r"[^A-Za-z0-9]+", "_", run_id))


@task.short_circuit(task_id="is_different")
def _is_different(diff: dict[str, Any]) -> bool:
    """Return whether there is anything to promote."""
    return bool(diff["exit_code"] == DIFFERENT)
