"""The DAGs of a project: for each file in ``conf/jobs``, one that runs the job and one that recomputes its past.

On request, the project gets one more DAG, which drops branches and cleans up.

A DAG file needs only this:

    from rewindow.airflow.dags import make_dags

    globals().update(make_dags("/opt/flights"))

When Airflow parses the file, YAML is read, but Spark is not imported.

A pool of one slot, ``max_active_tis_per_dag`` (which also applies to backfills) and ``max_active_runs`` allow one writer at a
time. They only avoid wasted work. The tables are correct without them, because the ledger accepts only one of two writers.

A job's past is recomputed by the tasks backfill -> verify -> promote. The last task compares the branch with the published
tables, and waits for approval before it changes them. If they are equal, nobody is asked. Scheduled runs can continue
meanwhile, because `promote` first replays on the branch what they have processed. To repeat a failed task after a fix, clear
it. Then `backfill` continues its branch, or starts it over if the code has changed since.

The project's own DAG has one task, the command that its params describe. If the params do not fit together, the task fails
before the command starts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pendulum
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow.sdk.exceptions import AirflowFailException

from rewindow.airflow.assets import TableAssets
from rewindow.airflow.commands import several
from rewindow.airflow.dag_run import BACKFILL_SUFFIX, MAINTENANCE
from rewindow.airflow.job_tasks import LONGEST, JobTasks, PromoteOperator, limit, location_of, one_writer, pool_of
from rewindow.airflow.log_watermarks import epoch_ms
from rewindow.airflow.operators import RewindowOperator
from rewindow.airflow.params import BACKFILL, DROP, GC, RUN, is_time, maintenance_params, set_params
from rewindow.airflow.reports import WAREHOUSE
from rewindow.config.job import JobConfig
from rewindow.config.load import find_project, load_feed, load_job, load_jobs
from rewindow.errors import ConfigError, UsageError

_BRANCH = (
    "{{ params['branch'] or 'backfill_' }}"
    "{% if not params['branch'] %}{% for letter in run_id %}{{ letter if letter.isalnum() else '_' }}{% endfor %}{% endif %}"
)
"""The branch's name. Each task computes it from the params, because people may edit what another task has stored."""
_FROM = "--from={{ params['from'] }}"
_TO = "{{ '--to=' ~ params['to'] if params['to'] else '' }}"
_ACCEPTS = "{{ '--accept-changes' if params['accept_changes'] else '' }}"
_ENDS = ("dagrun_timeout", "deadline")
"""Options that could end a DAG run while it waits for people. The backfill DAG and the maintenance DAG do not get them."""
_DROPS = f"params['action'] == '{DROP}'"
_ARGUMENTS = (
    f"{{{{ 'branch' if {_DROPS} else 'gc' }}}}",
    f"{{{{ 'drop' if {_DROPS} else '' }}}}",
    "{{ params['job'] or params['feed'] or '' }}",
    f"{{{{ params['branch'] if {_DROPS} else '' }}}}",
    # --kind is needed because a job and a feed may have the same name.
    f"{{{{ '' if {_DROPS} else '--kind=job' if params['job'] else '--kind=feed' if params['feed'] else '' }}}}",
    f"{{{{ '' if {_DROPS} or not params['keep'] else '--keep=' ~ params['keep'] }}}}",
    "{{ '--dry-run' if params['dry_run'] else '' }}",
)
_DOC = """\
Drops a branch of a job, or deletes what nothing needs (`rewindow gc`), as its params say.

`gc` without a job and a feed cleans up all of them. With `dry_run` it only says what it would delete.
"""


def make_dags(
    project: str | os.PathLike[str] = ".",
    *,
    target: str = "local",
    jobs: Sequence[str] | None = None,
    start_date: datetime | None = None,
    end_date: datetime | None = None,
    catchup: bool = False,
    lands: bool = True,
    pool: str = "rewindow",
    conn_id: str | None = None,
    reports: str = WAREHOUSE,
    reports_url: str | None = None,
    executable: Sequence[str] = (),
    default_args: Mapping[str, Any] | None = None,
    execution_timeout: timedelta | None = LONGEST,
    prefix: str = "",
    tags: Sequence[str] = (),
    approvers: Sequence[str] = (),
    maintenance: str | None = None,
    **options: Any,
) -> dict[str, DAG]:
    """Return the DAGs ``<job>`` and ``<job>__backfill`` of each job, to add to a DAG file's globals.

    Args:
        project: The folder with ``conf/`` and ``jobs/``; the same path on every worker.
        target: The target to run against, a file of ``conf/targets``.
        jobs: Make DAGs only for these jobs, and read no other job's file. Default: every file in ``conf/jobs``.
        start_date: Start of the schedule; required for ``catchup``. Airflow creates no task for earlier logical dates.
        end_date: End of the schedule and of all logical dates.
        catchup: Create a run for each interval since ``start_date``. The tables do not need it, because a run takes
            everything that is complete at its interval's end.
        lands: Whether the DAG lands its job's feed. If False, the run waits until the log is complete.
        pool: The pool of one slot. ``{job}`` and ``{feed}`` in its name are replaced.
        conn_id: The Airflow connection with the credentials of the buckets; see `hooks.BucketHook`.
        reports: Whether tasks write reports: ``warehouse`` (below ``rewindow/reports`` in the warehouse) or ``none``.
        reports_url: The address at which a web server serves that folder, for the links. Default: the files' own addresses.
        executable: The command line of rewindow if it is installed in another environment.
        default_args: Airflow's default arguments of every task, including ``retries`` and ``retry_delay``.
        execution_timeout: How long a command may take before Airflow stops it and tries again, by default a day. None: no limit.
        prefix: The beginning of the id of each DAG, so that one project can be loaded for several targets.
        tags: Tags of each DAG besides rewindow's.
        approvers: The ids of the users who may approve a backfill. Default: everybody who may trigger it.
        maintenance: The id, after ``prefix``, of a further DAG that drops branches and cleans up. Default: no such DAG.
        options: Other arguments of Airflow's `DAG`: ``access_control``, ``dagrun_timeout``, ``deadline``,
            ``on_success_callback``, ``on_failure_callback``, ``owner_links`` and so on. The backfill DAG, which waits for
            people, and the maintenance DAG get neither ``dagrun_timeout`` nor ``deadline``.

    Raises `ConfigError` (78) for invalid configuration, `UsageError` (2) for an invalid argument. Airflow's `DAG` raises errors
    for options that it does not have or that are set here.
    """
    root = find_project(Path(project).absolute())
    _check_dates(start_date, end_date, catchup=catchup)
    args = dict(default_args or {})
    more = {"conn_id": conn_id, "reports": reports, "reports_url": reports_url, **limit(execution_timeout, args)}
    location, assets = location_of(root, target, executable, more), TableAssets(root, target)
    look = _DagLook(prefix, several("tags", tags), options, args)
    dags: dict[str, DAG] = {}
    chosen = load_jobs(root) if jobs is None else {name: load_job(root, name) for name in several("jobs", jobs)}
    if not chosen:
        raise ConfigError("project-without-jobs", "{project} has no jobs: add a file conf/jobs/JOB.yaml", project=root)
    feeds = {name: load_feed(root, name) for name in dict.fromkeys(job.feed for job in chosen.values())}
    for name, job in chosen.items():
        tasks = JobTasks(job, feeds[job.feed], location, assets, pool_of(job, pool), lands, look.default_args)
        dates = (start_date or pendulum.datetime(2000, 1, 1), end_date)
        dags[f"{prefix}{name}"] = _job_dag(tasks, look, dates, catchup=catchup)
        dags[f"{prefix}{name}{BACKFILL_SUFFIX}"] = _backfill_dag(
            job, location, assets, look, pool=tasks.pool, approvers=several("approvers", approvers)
        )
    if maintenance is not None:
        if f"{prefix}{maintenance}" in dags:
            raise UsageError(
                "maintenance-dag-taken",
                "maintenance={dag!r} is the id of a job's DAG: choose another id",
                dag=maintenance,
            )
        dag = _maintenance_dag(maintenance, (sorted(chosen), sorted(feeds)), location, look, pool=pool)
        dags[dag.dag_id] = dag
    return dags


def _check_dates(start: datetime | None, end: datetime | None, *, catchup: bool) -> None:
    for name, given in (("start_date", start), ("end_date", end)):
        if not isinstance(given, datetime | None):
            raise UsageError(
                "date-not-datetime",
                "{argument}={given!r} is not a datetime: write {argument}=pendulum.datetime(2026, 11, 1)",
                argument=name,
                given=given,
            )
    if catchup and start is None:
        raise ConfigError("catchup-without-start-date", "catchup=True requires start_date=: add it")


def _job_dag(tasks: JobTasks, look: _DagLook, dates: tuple[datetime, datetime | None], *, catchup: bool) -> DAG:
    """Return the DAG that runs a job."""
    job, feed = tasks.job, tasks.feed
    with DAG(
        dag_id=f"{look.prefix}{job.job}",
        schedule=None if job.schedule is None else CronDataIntervalTimetable(job.schedule, timezone=feed.zone),
        start_date=dates[0],
        end_date=dates[1],
        catchup=catchup,
        max_active_runs=1,
        default_args=dict(look.default_args),
        tags=["rewindow", job.feed, *look.tags],
        doc_md=_doc(job, look.prefix),
        **look.options,
    ) as dag:
        tasks.add()
    set_params(dag, RUN)
    return dag


def _doc(job: JobConfig, prefix: str) -> str:
    tables = ", ".join(f"`{output.table}`" for output in job.outputs.values()) or "no table"
    return (
        f"Replays feed `{job.feed}` through `{job.topology}` into {tables}.\n\n"
        "A run takes everything that is complete at its interval's end, including what earlier runs have left, and ends "
        f"at once if there is nothing to do. Use the DAG `{prefix}{job.job}{BACKFILL_SUFFIX}` to recompute the past."
    )


@dataclass(frozen=True, slots=True)
class _DagLook:
    """The settings that all DAGs of one call of `make_dags` share: start of their ids, tags, options and default arguments."""

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


def _backfill_dag(
    job: JobConfig,
    location: Mapping[str, Any],
    assets: TableAssets,
    look: _DagLook,
    *,
    pool: str,
    approvers: Sequence[str] = (),
) -> DAG:
    """Return a job's backfill DAG, which is triggered by hand with the params `params.BACKFILL`.

    ``location``: the operators' arguments from `location_of`. ``assets``: the assets of the project's tables.
    """
    name, writer = job.job, one_writer(pool, look.default_args)
    assigned: dict[str, Any] = (
        {"assigned_users": [{"id": user, "name": user} for user in approvers]} if approvers else {}
    )
    with look.by_hand(f"{name}{BACKFILL_SUFFIX}", ["backfill", job.feed], __doc__) as dag:
        backfill = RewindowOperator(
            task_id="backfill",
            arguments=["backfill", name, _FROM, _TO, "--branch", _BRANCH, _ACCEPTS],
            pre_execute=_check_range,
            **location,
            **writer,
        )
        verify = RewindowOperator(
            task_id="verify", arguments=["verify", name, "--branch", _BRANCH], **location, **writer
        )
        promote = PromoteOperator(
            task_id="promote",
            job=name,
            branch=_BRANCH,
            outlets=[assets.of(output.table) for output in job.outputs.values()],
            **assigned,
            **location,
            **writer,
        )
        backfill >> verify >> promote
    set_params(dag, BACKFILL)
    return dag


def _check_range(context: Any) -> None:
    """Fail the task at once if its range ends before it starts, because retries cannot help."""
    start, end = context["params"]["from"], context["params"]["to"]
    if end and is_time(start) and is_time(end) and epoch_ms(start) > epoch_ms(end):
        raise AirflowFailException(f"from {start} to {end}: the end is before the start")


def _maintenance_dag(
    dag_id: str,
    names: tuple[Sequence[str], Sequence[str]],
    location: Mapping[str, Any],
    look: _DagLook,
    *,
    pool: str,
) -> DAG:
    """Return the maintenance DAG, which is triggered by hand with the params `params.maintenance_params`.

    ``names``: the names of the jobs, then those of the feeds, that the trigger's form offers. ``location``: the operators'
    arguments from `location_of`.
    """
    with look.by_hand(dag_id, [MAINTENANCE], _DOC) as dag:
        # `gc` may work on several jobs and feeds, so it cannot use the pool of a single job or feed.
        writer = one_writer("default_pool" if "{" in pool else pool, look.default_args)
        RewindowOperator(task_id="maintain", arguments=_ARGUMENTS, pre_execute=_check_params, **location, **writer)
    set_params(dag, maintenance_params(*names))
    return dag


def _check_params(context: Any) -> None:
    """Fail the task at once if its params do not fit together. The trigger has already checked the pattern of each param."""
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
