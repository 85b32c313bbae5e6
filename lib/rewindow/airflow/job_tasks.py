"""The tasks that land a feed and run a job, as a separate DAG or as a group of tasks in another DAG."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import TaskGroup

from rewindow.airflow.assets import TableAssets
from rewindow.airflow.commands import several
from rewindow.airflow.operators import RewindowOperator
from rewindow.airflow.reports import WAREHOUSE, check_reports
from rewindow.airflow.sensors import LogCompleteSensor
from rewindow.config.feed import FeedConfig
from rewindow.config.job import JobConfig
from rewindow.config.load import find_project, load_feed, load_job
from rewindow.errors import UsageError

_RETRIES = {
    "retries": 5,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=10),
}


LONGEST = timedelta(days=1)
"""The default of ``execution_timeout``. A command that takes longer probably hangs, so it is stopped."""


def job_group(
    job: str,
    project: str | os.PathLike[str] = ".",
    *,
    target: str = "local",
    lands: bool = True,
    pool: str = "rewindow",
    conn_id: str | None = None,
    reports: str = WAREHOUSE,
    reports_url: str | None = None,
    executable: Sequence[str] = (),
    default_args: Mapping[str, Any] | None = None,
    execution_timeout: timedelta | None = LONGEST,
    group_id: str | None = None,
) -> TaskGroup:
    """Return the tasks of a job as a group for your own DAG.

    In your DAG, write ``extract >> job_group("daily_orders") >> publish``. The tasks are those of the job's DAG. They process
    everything up to the end of your DAG run's interval, or everything if it has no interval. See `dags.make_dags` for the
    arguments; ``group_id`` is the job's name by default. Give your DAG ``max_active_runs=1``, and the params `params.RUN` if
    people trigger it by hand.

    Raises `ConfigError` (78) for invalid configuration, `UsageError` (2) for an invalid argument.
    """
    root = find_project(Path(project).absolute())
    config = load_job(root, job)
    feed, args = load_feed(root, config.feed), dict(default_args or {})
    more = {"conn_id": conn_id, "reports": reports, "reports_url": reports_url, **limit(execution_timeout, args)}
    where, assets = location_of(root, target, executable, more), TableAssets(root, target)
    tasks = JobTasks(config, feed, where, assets, pool_of(config, pool), lands, args)
    with TaskGroup(group_id or job, default_args=dict(default_args or {})) as group:
        tasks.add()
    return group


def location_of(root: Path, target: str, executable: Sequence[str], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that all operators of a project have: its folder, target and executable, and what ``more`` has."""
    check_reports(more["reports"])
    return {"project": str(root), "target": target, "executable": several("executable", executable), **more}


def limit(execution_timeout: timedelta | None, default_args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the time limit of commands as an argument of their tasks, unless the default arguments set it.

    It is not a default argument itself, because tasks that wait for people or data have no such limit.
    """
    return {} if "execution_timeout" in default_args else {"execution_timeout": execution_timeout}


def pool_of(job: JobConfig, pool: str) -> str:
    """Return the name of a job's pool. Raises `UsageError` (2) for an unknown word in braces."""
    try:
        return pool.format(job=job.job, feed=job.feed)
    except (LookupError, ValueError) as error:
        raise UsageError(
            "pool-template-invalid", "pool={pool!r}: only {{job}} and {{feed}} can be replaced", pool=pool
        ) from error


@dataclass(frozen=True, slots=True)
class JobTasks:
    """A maker of the tasks of a job. ``location`` is the result of `location_of`."""

    job: JobConfig
    feed: FeedConfig
    location: Mapping[str, Any]
    assets: TableAssets
    pool: str
    lands: bool
    default_args: Mapping[str, Any]

    def add(self) -> None:
        """Add the tasks: land -> run, or a single task for a feed without ``every``, or wait -> run if the DAG does not land."""
        job, feed = self.job.job, self.feed.feed
        where = {name: self.location[name] for name in ("project", "target", "conn_id")}
        outlets = [self.assets.of(output.table) for output in self.job.outputs.values()]
        source = self.assets.of_feed(feed)
        writer = one_writer(self.pool, self.default_args)
        if not self.lands:
            complete = LogCompleteSensor(task_id="log_complete", feed=feed, **where, deferrable=True)
            complete >> RewindowOperator(
                task_id="run", job=job, by="through", inlets=[source], outlets=outlets, **self.location, **writer
            )
        elif self.feed.landing.every is None:
            RewindowOperator(
                task_id="run",
                job=job,
                feed=feed,
                by="nothing",
                outlets=[source, *outlets],
                **self.location,
                **writer,
            )
        else:
            land = RewindowOperator(task_id="land", feed=feed, outlets=[source], **self.location, **writer)
            by = "through" if self.feed.landing.watermark == "interval_end" else "until"
            land >> RewindowOperator(
                task_id="run", job=job, by=by, inlets=[source], outlets=outlets, **self.location, **writer
            )


def one_writer(pool: str, default_args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a task that writes: its pool, at most one instance per DAG, and its retries."""
    # A task's own arguments override the DAG's default arguments. So if the defaults have a setting of retries, it is left out.
    own = {name: value for name, value in _RETRIES.items() if name not in default_args}
    return {"pool": pool, "max_active_tis_per_dag": 1, **own}
