"""The params of the DAGs that `make_dags` makes. The trigger's form shows and checks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Final

from airflow.sdk import DAG, Param

from rewindow.airflow.dag_run import ACCEPT_CHANGES, END, REPLAN, TAKEOVER, THROUGH, TIME

_POSITION = rf"^({TIME}|[0-9]{{1,18}}|[A-Za-z_][A-Za-z0-9_-]{{0,99}}/[0-9]{{1,18}}){END}"
"""Pattern of an event time, the number of a landing, or a run, as in the options of `rewindow backfill`."""

_BRANCH = rf"^[A-Za-z_][A-Za-z0-9_-]{{0,99}}{END}"
_DURATION = rf"^([0-9]{{1,19}}(ms|[smhdw]))+{END}"

GC, DROP = "gc", "drop_branch"
"""The actions of the maintenance DAG."""

_ACCEPTS = Param(
    False,
    type="boolean",
    title="Accept changes",
    description="Resume from a checkpoint of different code or topology, if its stores are still compatible.",
)

RUN: Final = {
    THROUGH: Param(
        None,
        type=["null", "string"],
        format="date-time",  # shows a calendar in the trigger's form; Airflow itself checks only the pattern
        pattern=f"^{TIME}{END}",
        title="Through",
        description="Stop at this time, such as 2013-02-01T00:00:00Z (UTC unless it has an offset). "
        "Default: the end of the run's interval.",
    ),
    ACCEPT_CHANGES: _ACCEPTS,
    REPLAN: Param(
        False,
        type="boolean",
        title="Replan",
        description="Discard the plan of an attempt that did not finish, and plan a new run.",
    ),
    TAKEOVER: Param(
        False,
        type="boolean",
        title="Take over",
        description="Fence an attempt that is still running, and take over its run. Stop it first if you can.",
    ),
}
"""The params of a job's DAG."""

BACKFILL: Final = {
    "from": Param(
        type="string",
        pattern=_POSITION,
        title="From",
        description="First event time (UTC unless it has an offset), landing or run (main/3) to replay; "
        "rounded down to the start of a run.",
    ),
    "to": Param(
        None,
        type=["null", "string"],
        pattern=_POSITION,
        title="To",
        description="Last event time (UTC unless it has an offset), landing or run to replay. Default: the end of main.",
    ),
    "branch": Param(
        None,
        type=["null", "string"],
        pattern=_BRANCH,
        title="Branch",
        description="Branch to create, or to continue if it exists; runs of other code start over. Default: named after "
        "the DAG run.",
    ),
    ACCEPT_CHANGES: _ACCEPTS,
}
"""The params of a job's backfill DAG."""


def maintenance_params(jobs: Sequence[str], feeds: Sequence[str]) -> dict[str, Param]:
    """Return the params of the maintenance DAG of a project with these jobs and feeds."""
    return {
        "action": Param(
            type="string",
            enum=[GC, DROP],
            title="Action",
            description="gc deletes state and files that nothing needs; drop_branch drops a branch of a job for good.",
        ),
        "job": _one_of(jobs, "Job", "Whose branch to drop, or what to clean up. Default for gc: all jobs and feeds."),
        "feed": _one_of(feeds, "Feed", "The feed to clean up. Default for gc: all jobs and feeds."),
        "branch": Param(
            None, type=["null", "string"], pattern=_BRANCH, title="Branch", description="The branch to drop."
        ),
        "keep": Param(
            None,
            type=["null", "string"],
            pattern=_DURATION,
            title="Keep",
            description="How long gc keeps state and files that nothing needs, such as 12h. Default: keep of the target, or 30d.",
        ),
        "dry_run": Param(False, type="boolean", title="Dry run", description="gc only says what it would delete."),
    }


def _one_of(names: Sequence[str], title: str, description: str) -> Param:
    return Param(None, type=["null", "string"], enum=[None, *names], title=title, description=description)


def set_params(dag: DAG, params: Mapping[str, Param]) -> None:
    """Give a DAG its params. Must be called after its tasks were added.

    If a DAG already has params when a task is added, Airflow copies them into the task, which took half of the parsing time.
    The copies are not needed, because Airflow merges the DAG's params into each run anyway.
    """
    # The params are copied, because a DAG run changes its params in place.
    dag.params.update({name: copy(param) for name, param in params.items()})


def is_time(text: str) -> bool:
    """Return whether a text is a time rather than a landing number or the name of a run."""
    return not text.isdigit() and "/" not in text
