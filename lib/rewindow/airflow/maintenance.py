"""The DAG for what an operator otherwise needs a shell for: drop a branch, or clean up with `gc`.

It has one task, a command that its params describe. Params that do not fit together fail it before the command starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from rewindow.airflow.advice import MAINTENANCE
from rewindow.airflow.backfills import DagLook
from rewindow.airflow.operators import RewindowOperator
from rewindow.airflow.params import DROP, GC, maintenance_params, set_params
from rewindow.airflow.single_writer import one_writer

_DROPS = f"params['action'] == '{DROP}'"
_ARGUMENTS = (
    f"{{{{ 'branch' if {_DROPS} else 'gc' }}}}",
    f"{{{{ 'drop' if {_DROPS} else '' }}}}",
    "{{ params['job'] or params['feed'] or '' }}",
    f"{{{{ params['branch'] if {_DROPS} else '' }}}}",
    # A job and a feed may have the same name.
    f"{{{{ '' if {_DROPS} else '--kind=job' if params['job'] else '--kind=feed' if params['feed'] else '' }}}}",
    f"{{{{ '' if {_DROPS} else '--keep=' ~ params['keep'] }}}}",
    "{{ '--dry-run' if params['dry_run'] else '' }}",
)
_DOC = """\
Drops a branch of a job, or deletes what nothing needs (`rewindow gc`), as its params say.

`gc` without a job and a feed cleans up all of them. With `dry_run` it only says what it would delete.
"""


def maintenance_dag(
    dag_id: str,
    names: tuple[Sequence[str], Sequence[str]],
    location: Mapping[str, Any],
    look: DagLook,
    *,
    pool: str,
) -> DAG:
    """Return the DAG, which is triggered by hand with the params `params.maintenance_params`.

    ``names`` are those of the jobs and feeds that the trigger's form offers. ``location`` holds the operators' arguments
    that say where the project is. A ``pool`` for each job or feed is not used, because `gc` may be about several.
    """
    with look.by_hand(dag_id, [MAINTENANCE], _DOC) as dag:
        writer = one_writer("default_pool" if "{" in pool else pool, look.default_args)
        RewindowOperator(task_id="maintain", arguments=_ARGUMENTS, pre_execute=check_params, **location, **writer)
    set_params(dag, maintenance_params(*names))
    return dag


def check_params(context: Any) -> None:
    """Fail the task for params that do not fit together. The patterns of single params are checked by the trigger."""
    params = context["params"]
    given = {name for name in ("job", "feed", "branch", "dry_run") if params[name]}
    if params["action"] == DROP:
        if {"job", "branch"} - given:
            raise AirflowFailException(f"action {DROP}: it needs the params job and branch")
        if params["branch"] == "main":
            raise AirflowFailException("branch main holds the published tables and cannot be dropped: name another one")
        wrong = given & {"feed", "dry_run"}
    else:
        wrong = given & {"branch"}
        if {"job", "feed"} <= given:
            raise AirflowFailException(f"action {GC}: choose a job or a feed, or neither to clean up all of them")
    if wrong:
        raise AirflowFailException(
            f"action {params['action']} has no use for {', '.join(sorted(wrong))}: leave it empty"
        )
