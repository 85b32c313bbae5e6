"""The tasks of a job, in its own DAG or as a group in another DAG: land a feed, run the job, and promote a recomputed past."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from airflow.providers.standard.operators.hitl import ApprovalOperator, HITLOperator
from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
from airflow.sdk import TaskGroup
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from rewindow.airflow.assets import TableAssets
from rewindow.airflow.commands import several
from rewindow.airflow.dag_run import is_retry
from rewindow.airflow.operators import RewindowOperator
from rewindow.airflow.reports import WAREHOUSE, check_reports
from rewindow.airflow.sensors import LogCompleteSensor
from rewindow.config.feed import FeedConfig
from rewindow.config.job import JobConfig
from rewindow.config.load import find_project, load_feed, load_job
from rewindow.contracts.exit_codes import DIFFERENT
from rewindow.errors import UsageError, visible

_RETRIES = {
    "retries": 5,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=10),
}


LONGEST = timedelta(days=1)
"""The default of ``execution_timeout``. A command that takes longer probably hangs, so Airflow stops it."""


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
    """Return the arguments that all operators of a project share: its folder, target and executable, and those in ``more``."""
    check_reports(more["reports"])
    return {"project": str(root), "target": target, "executable": several("executable", executable), **more}


def limit(execution_timeout: timedelta | None, default_args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the time limit of commands as an argument of their tasks, unless the default arguments set it.

    It is not a default argument itself, because tasks that wait for people or data must not have it.
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
    """Makes the tasks of a job. ``location`` is the result of `location_of`."""

    job: JobConfig
    feed: FeedConfig
    location: Mapping[str, Any]
    assets: TableAssets
    pool: str
    lands: bool
    default_args: Mapping[str, Any]

    def add(self) -> None:
        """Add the tasks: land -> run, or one task for a feed without ``every``, or wait -> run if the DAG does not land."""
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
    # A task's own arguments override the DAG's default arguments. So retry settings in the default arguments are not set here.
    own = {name: value for name, value in _RETRIES.items() if name not in default_args}
    return {"pool": pool, "max_active_tis_per_dag": 1, **own}


_MOST_CHARACTERS: Final = 10_000
"""The maximum length of the differences shown in a question, which people read in a browser."""
_COUNTS: Final = ("equal", "different", "only_first", "only_second")


class PromoteOperator(RewindowOperator, ApprovalOperator):
    """Compares a branch with the published tables, asks for approval, and promotes the branch. Asks nobody if nothing differs.

    This is one task for safety. Users who may trigger a DAG may also mark its tasks as successful, clear them and edit what
    they have stored. So no other task decides whether the branch is promoted, and the question contains nothing that another
    task stored.

    Args:
        job: The job.
        branch: The branch to promote.
        assigned_users: The users who may approve, as for Airflow's `ApprovalOperator`. Default: all who may edit the DAG's runs.
        execution_timeout: The time limit of a command, not of the people.

    The other arguments are those of `RewindowOperator`. If `promote` ends with a code that is retried, the task waits in the
    triggerer and repeats it without another question. If the task is cleared or loses its worker, it compares and asks again.
    """

    def __init__(
        self, *, job: str, branch: str, execution_timeout: timedelta | None = None, retries: int = 5, **kwargs: Any
    ) -> None:
        super().__init__(
            arguments=["promote", job, branch],
            subject=f"Publish the backfill of {job}?",
            execution_timeout=None,  # Airflow would take it as the time in which people must answer
            retries=retries,
            **kwargs,
        )
        self.response_timeout = None
        self.execution_timeout = execution_timeout

    def execute(self, context: Any) -> Any:
        """Compare, and wait for an answer if anything differs."""
        promotes = _, job, branch = self.arguments
        self.arguments = ["diff", job, "main", branch]
        found = self._run(context, accepts={DIFFERENT})
        self.arguments = promotes
        if found.pop("exit_code") != DIFFERENT:
            # An earlier try may have promoted the branch and ended before it sent the events of its assets.
            if is_retry(context):
                self.log.info("Nothing differs from the published tables")
                return found
            raise AirflowSkipException("Nothing differs from the published tables, so there is nothing to publish")
        report = self._write_report({"job": job, "branch": branch, "runs": ["all"]})
        self.body = question(job, branch, found, report)
        return ApprovalOperator.execute(self, context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Promote the branch if the answer is to approve it."""
        answer = HITLOperator.execute_complete(self, context, event)
        if answer["chosen_options"] != [self.APPROVE]:
            raise AirflowSkipException("The branch was rejected, so it is not published")
        self.log.info("Approved by %s", visible((answer["responded_by_user"] or {}).get("name")))
        return self.promote(context)

    def promote(self, context: Any, event: Any = None, tries: int = 0) -> dict[str, Any]:
        """Promote the branch, after ``tries`` failed attempts."""
        del event
        try:
            return RewindowOperator.execute(self, context)
        except AirflowFailException:
            raise
        except AirflowException as error:
            if tries >= self.retries:
                raise AirflowFailException(str(error)) from error
            # The task waits here instead of being retried, because a retry would ask again.
            delay = self.retry_delay * 2**tries
            self.log.warning("%s. The next attempt is in %s", error, delay)
            self.defer(trigger=TimeDeltaTrigger(delay), method_name="promote", kwargs={"tries": tries + 1})
            raise  # unreachable: `defer` raises


def question(job: str, branch: str, found: Mapping[str, Any], report: str | None) -> str:
    """Return the text of an approval, in Markdown. ``found``: what `diff` printed. ``report``: the address of the report."""
    counts = [(name, of) for name, of in found.items() if isinstance(of, Mapping)]
    rows = [f"| {visible(name)} | {' | '.join(str(of.get(count)) for count in _COUNTS)} |" for name, of in counts]
    source = f"The report {report} has" if report else f"`rewindow report {job} --branch {branch} --diff main` writes"
    # JSON escapes line breaks, so no text in the data can end the block of code.
    text = json.dumps(found, indent=2)
    more = " ..." if len(text) > _MOST_CHARACTERS else ""
    lines = (
        f"Branch **{branch}** of job **{job}** differs from the published tables:",
        "",
        "| output | equal | different | only published | only in the branch |",
        "| --- | --- | --- | --- | --- |",
        *rows,
        "",
        f"{source} this comparison as a page, with samples and what changed.",
        "",
        "*Approve* publishes the branch, in one commit per table. *Reject* changes nothing.",
        "",
        "First differences:",
        "",
        "```json",
        f"{text[:_MOST_CHARACTERS]}{more}",
        "```",
    )
    return "\n".join((*lines, ""))
