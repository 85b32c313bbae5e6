"""The DAGs of a project: one for each file in ``conf/jobs``, and one that recomputes the job's past.

A DAG file says no more than this:

    from rewindow.airflow.dags import make_dags

    globals().update(make_dags("/opt/flights"))

Parsing it reads YAML and imports no Spark. One writer at a time: a pool of one slot, one task of a kind at a time in a DAG
(``max_active_tis_per_dag``, which holds for backfills too) and one run at a time. That is thrift and order in the user
interface: what keeps tables right is rewindow's ledger.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pendulum
from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from rewindow.airflow.assets import table_asset
from rewindow.airflow.backfills import backfill_dag
from rewindow.airflow.commands import several
from rewindow.airflow.intervals import TIME
from rewindow.airflow.operators import RewindowOperator
from rewindow.airflow.sensors import LogCompleteSensor
from rewindow.airflow.single_writer import one_writer
from rewindow.config.feed import FeedConfig
from rewindow.config.job import JobConfig
from rewindow.config.load import find_project, load_feed, load_job, load_jobs, load_target
from rewindow.errors import ConfigError, UsageError

THROUGH = Param(
    None,
    type=["null", "string"],
    format="date-time",  # a calendar in the trigger's form; Airflow validates patterns only
    pattern=f"^{TIME}$",
    title="Through",
    description="Stop at this time, such as 2013-02-01T00:00:00Z (default: the end of the run's interval).",
)


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
    executable: Sequence[str] = (),
    default_args: Mapping[str, Any] | None = None,
) -> dict[str, DAG]:
    """Return for each job its DAG and its backfill's, ``<job>`` and ``<job>__backfill``, to be put into a DAG file's globals.

    Args:
        project: The folder that holds ``conf/`` and ``jobs/``; the same path on every worker.
        target: The file of ``conf/targets`` that says where things are.
        jobs: Only these, so that no other job's file is read; default: every file in ``conf/jobs``.
        start_date: Of the schedule; needed for ``catchup``. Airflow makes no task of an earlier logical date.
        end_date: Of the schedule, and of all logical dates.
        catchup: Make a run for each interval since ``start_date``. The tables do not need it: a run takes all that was
            complete before its interval's end with it.
        lands: The DAG lands its job's feed. False: somebody else does, and the run waits until the log is complete.
        pool: The pool of one slot; ``{job}`` and ``{feed}`` in its name are filled in.
        executable: How rewindow is called where it lies in an environment of its own.
        default_args: Of every task, as Airflow's; ``retries`` and ``retry_delay`` too.

    Raises `ConfigError` (78) that names file, key and fix, `UsageError` (2) that names the argument.
    """
    root = find_project(Path(project).absolute())
    _check_dates(start_date, end_date, catchup=catchup)
    place = {"project": str(root), "target": target, "executable": several("executable", executable)}
    if "{{" not in target:
        load_target(root, target)
    dags: dict[str, DAG] = {}
    chosen = load_jobs(root) if jobs is None else {name: load_job(root, name) for name in several("jobs", jobs)}
    if not chosen:
        raise ConfigError(f"no job in {root}: a DAG is made of each conf/jobs/*.yaml, write the first")
    for name, job in chosen.items():
        made = Making(
            job,
            load_feed(root, job.feed),
            place,
            _pool_of(job, pool),
            (start_date or pendulum.datetime(2000, 1, 1), end_date),
            catchup,
            lands,
            dict(default_args or {}),
        )
        dags[name] = made.dag()
        dags[f"{name}__backfill"] = backfill_dag(job, place, pool=made.pool, default_args=made.default_args)
    return dags


def _check_dates(start: datetime | None, end: datetime | None, *, catchup: bool) -> None:
    for name, given in (("start_date", start), ("end_date", end)):
        if not isinstance(given, datetime | None):
            raise UsageError(f"{name}={given!r} is no datetime: write {name}=pendulum.datetime(2026, 11, 1)")
    if catchup and start is None:
        raise ConfigError("catchup=True makes a run for each interval since start_date=: give that too")


def _pool_of(job: JobConfig, pool: str) -> str:
    try:
        return pool.format(job=job.job, feed=job.feed)
    except (LookupError, ValueError) as error:
        raise UsageError(f"pool={pool!r}: only {{job}} and {{feed}} are filled in") from error


@dataclass(frozen=True)
class Making:
    """What a job's DAG is made of."""

    job: JobConfig
    feed: FeedConfig
    place: Mapping[str, Any]
    pool: str
    dates: tuple[datetime, datetime | None]
    catchup: bool
    lands: bool
    default_args: Mapping[str, Any] = field(default_factory=dict)

    def dag(self) -> DAG:
        """Return the job's DAG: land -> run, or one task for a feed without ``every``, or wait -> run."""
        with DAG(
            dag_id=self.job.job,
            schedule=self._schedule(),
            start_date=self.dates[0],
            end_date=self.dates[1],
            catchup=self.catchup,
            max_active_runs=1,
            default_args=dict(self.default_args),
            params={"through": THROUGH},
            tags=["rewindow", self.job.feed],
            doc_md=self._words(),
        ) as dag:
            self._tasks()
        return dag

    def _schedule(self) -> CronDataIntervalTimetable | list[Any] | None:
        if self.job.schedule is not None:
            return CronDataIntervalTimetable(self.job.schedule, timezone=self.feed.zone)
        return None

    def _tasks(self) -> None:
        job, feed = self.job.job, self.feed.feed
        outlets = [table_asset(output.table) for output in self.job.outputs.values()]
        writer = one_writer(self.pool, self.default_args)
        if not self.lands:
            complete = LogCompleteSensor(
                task_id="log_complete",
                feed=feed,
                project=self.place["project"],
                target=self.place["target"],
                deferrable=True,
            )
            complete >> RewindowOperator(task_id="run", job=job, by="through", outlets=outlets, **self.place, **writer)
        elif self.feed.landing.every is None:
            RewindowOperator(task_id="run", job=job, feed=feed, by="nothing", outlets=outlets, **self.place, **writer)
        else:
            land = RewindowOperator(task_id="land", feed=feed, **self.place, **writer)
            by = "through" if self.feed.landing.watermark == "interval_end" else "until"
            land >> RewindowOperator(task_id="run", job=job, by=by, outlets=outlets, **self.place, **writer)

    def _words(self) -> str:
        tables = ", ".join(f"`{output.table}`" for output in self.job.outputs.values()) or "no table"
        return (
            f"Replays the feed `{self.job.feed}` through `{self.job.topology}` into {tables}.\n\n"
            "A run takes all that is complete at its interval's end, what earlier runs have left included; a run whose work "
            f"is done already ends at once. Recompute the past with the DAG `{self.job.job}__backfill`."
        )
