"""`RewindowOperator`: one rewindow command as a task. The command ends with its task, and its exit code decides about retries.

The command itself sends its events to OpenLineage, and uses the same variables as Airflow's OpenLineage provider. So the
provider need not be installed, and its listener need not know rewindow.
"""

from __future__ import annotations

import os
import shlex
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pendulum
from airflow.sdk import Asset, BaseOperator
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowFailException

from rewindow.airflow import commands
from rewindow.airflow.dag_run import (
    ACCEPT_CHANGES,
    REPLAN,
    TAKEOVER,
    interval_of,
    is_retry,
    is_set,
    lands_through,
    through_of,
    unread,
)
from rewindow.airflow.exit_exceptions import raise_for_exit
from rewindow.airflow.hooks import settings_or_fail
from rewindow.airflow.links import ReportLink
from rewindow.airflow.process import Command
from rewindow.airflow.reports import NONE, WAREHOUSE, check_reports, write_report
from rewindow.airflow.task_results import has_event, is_result, lines_of, reason_of, told_of
from rewindow.contracts.exit_codes import DIFFERENT
from rewindow.errors import RewindowError, UsageError, visible, without_secrets

_BOUNDS = ("until", "through", "nothing")
_FLAGS = (ACCEPT_CHANGES, REPLAN, TAKEOVER)
"""The params of a DAG that become options of `run`."""
_NOT_RUN = (
    "The command ended with exit code 1 and printed no result, so rewindow did not run. Its last lines above say why. "
    "Install rewindow in the Python of this worker, or in the environment that executable= names, then clear this task"
)
_OPTIONS: Final = {
    "transport": "OPENLINEAGE__TRANSPORT",
    "config_path": "OPENLINEAGE_CONFIG",
    "namespace": "OPENLINEAGE_NAMESPACE",
}
"""Maps each option of the section ``[openlineage]`` in Airflow's configuration to the variable of OpenLineage's client."""
_TRUE: Final = frozenset(("true", "t", "1"))


class RewindowOperator(BaseOperator):
    """Lands a feed, runs a job, or both, up to the end of the DAG run's interval. Alternatively runs any other command.

    Args:
        job: The job to run. With ``feed``, the same process lands its feed first.
        feed: The feed to land.
        arguments: Any other command of a project, such as ``["verify", "daily_orders"]``, instead of ``job`` and ``feed``.
            Arguments that are empty after their templates were rendered are dropped.
        by: How the interval's end bounds `run`: as an arrival time, as for `land` (``until``, for feeds with ``every``), as an
            event time (``through``), or not at all (``nothing``).
        branch: The branch to run on.
        project: The folder with ``conf/`` and ``jobs/`` on the worker.
        target: The target to run against, a file of ``conf/targets``.
        conn_id: The Airflow connection with the credentials of the buckets; see `hooks.BucketHook`. Only the command's
            environment contains them.
        executable: The command line of rewindow if it is installed in another environment. Default: the worker's Python.
        accepts: Further exit codes that count as success if the command printed its result as JSON, such as ``{1}`` for `diff`.
        env: Environment variables in addition to the worker's.
        reports: Whether the task writes a report after `run` and `backfill`: ``warehouse`` (into the warehouse, below
            ``rewindow/reports``) or ``none``.
        reports_url: The address at which a web server serves that folder, for the task's link. Default: the file's address.
        poll_s: Seconds between two polls.
        folder: Folder for the command's output while it runs. Default: the worker's temporary folder.

    Every argument that is passed to the command may be a template.

    The command ends with its task, even if the worker is killed. A retry starts the command again, which completes the plan of
    the earlier one.
    Exit code 71 is retried if the first try ends with it; 74, 75, signals and unknown codes are retried; all others fail at
    once. The result is the JSON that the command prints.
    """

    template_fields = (
        *("job", "feed", "arguments", "by", "branch", "project", "target", "conn_id", "executable", "env", "folder"),
        "reports_url",
    )
    operator_extra_links = (ReportLink(),)
    ui_color = "#dbe9e4"

    def __init__(
        self,
        *,
        job: str | None = None,
        feed: str | None = None,
        arguments: Sequence[str] = (),
        by: str = "until",
        branch: str | None = None,
        project: str = ".",
        target: str = "local",
        conn_id: str | None = None,
        executable: Sequence[str] = (),
        accepts: Collection[int] = (),
        env: Mapping[str, str] | None = None,
        reports: str = WAREHOUSE,
        reports_url: str | None = None,
        poll_s: float = 2.0,
        folder: str | None = None,
        retries: int = 5,
        **kwargs: Any,
    ) -> None:
        super().__init__(retries=retries, **kwargs)
        if bool(arguments) == bool(job or feed):
            raise UsageError(
                "operator-arguments-mixed", "a RewindowOperator takes job=, feed= or both, or else arguments="
            )
        if "{{" not in by:
            _check_bound(by)
        self.job = job
        self.feed = feed
        self.arguments = list(commands.several("arguments", arguments))
        self.by = by
        self.branch = branch
        self.project = project
        self.target = target
        self.conn_id = conn_id
        self.executable = commands.several("executable", executable)
        self.accepts = tuple(accepts)
        self.env = dict(env or {})
        self.reports = check_reports(reports)
        self.reports_url = reports_url
        self.report: str | None = None
        """The address of the report, once it is written."""
        self.poll_s = poll_s
        self.folder = folder
        self._command: Command | None = None

    def execute(self, context: Any) -> dict[str, Any]:
        """Run the command to its end and return the JSON that it printed."""
        result = self._run(context)
        self._publish_events(context, result)
        self.report = self._write_report(result)
        return {**result, "report": self.report} if self.report else result

    def command(self, context: Any) -> list[str]:
        """Return the command line of a DAG run. Raises `UsageError` (2) for an unrendered template."""
        for name in unread(context):
            self.log.warning("%r is not a param of this DAG and is ignored", name)
        arguments = [argument for argument in self.arguments if argument]
        if self.arguments and not arguments:
            raise UsageError(
                "operator-arguments-empty", "all arguments of this task are empty: check what their templates render to"
            )
        if not arguments:
            end = through_of(context)
            if end is None:
                self.log.info("This DAG run has no interval: it takes everything that is complete now")
            _check_bound(self.by)
            if self.job is None:
                arguments = commands.land(str(self.feed), lands_through(context, _last_due))
            else:
                bound = {} if self.by == "nothing" else {self.by: end}
                options = [f"--{name.replace('_', '-')}" for name in _FLAGS if is_set(context, name)]
                lands = self.feed is not None
                arguments = commands.run(self.job, lands=lands, branch=self.branch, options=options, **bound)
        return commands.command_line(arguments, project=self._folder, target=self.target, executable=self.executable)

    def on_kill(self) -> None:
        """Stop the command when the task is stopped."""
        if self._command is not None:
            self._command.stop()

    def _run(self, context: Any, *, accepts: Collection[int] = ()) -> dict[str, Any]:
        """Run the command and return its result. ``accepts``: exit codes that count as success in addition to the operator's.

        Raises `AirflowException` to retry, `AirflowFailException` to fail at once.
        """
        try:
            line = self.command(context)
        except UsageError as error:
            raise AirflowFailException(str(error)) from error
        self.log.info("Running %s", visible(" ".join(line)))
        parents = openlineage_env(context.get("ti"), _openlineage_option, os.environ)
        with self._start(line, parents) as command:
            code = command.wait(self.log.info, poll_s=self.poll_s)
            result = command.result()
        reason = reason_of(result)
        has_result = is_result(next((argument for argument in self.arguments if argument), ""), result)
        if code == DIFFERENT and not reason and not has_result:
            raise AirflowFailException(_NOT_RUN)
        raise_for_exit(
            context, code, reason, accepts=(*self.accepts, *accepts) if has_result else (), where=self._where
        )
        return {**result, "exit_code": code}

    @property
    def _folder(self) -> str:
        """The absolute path of the project's folder on this worker."""
        return str(Path(self.project).absolute())

    @property
    def _where(self) -> str:
        """The options with which a command on this worker finds the project and its target."""
        return shlex.join(["--project", self._folder, "--target", self.target])

    def _start(self, line: Sequence[str], env: Mapping[str, str] | None = None) -> Command:
        own = {**(env or {}), **settings_or_fail(self.conn_id), **self.env}
        self._command = Command(line, env=own, folder=self.folder, cwd=self._folder)
        return self._command

    def _write_report(self, result: Mapping[str, Any]) -> str | None:
        """Write the report on what the command did and return its address; None without a report.

        An error only logs a warning.
        """
        if self.reports == NONE:
            return None
        where = {"project": self._folder, "target": self.target, "executable": self.executable}
        try:
            return write_report(result, where, self.reports_url, self._start, self.log.info)
        except (RewindowError, AirflowFailException) as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - the work is committed, so nothing may fail the task, such as a full disk
            reason = visible(without_secrets(f"{type(error).__name__}: {error}"))
        self.log.warning("The work is done, but its report was not written: %s", reason)
        return None

    def _publish_events(self, context: Any, result: Mapping[str, Any]) -> None:
        """Describe the updated tables and feeds in the events of their assets. A command that found nothing to do sends no event.

        Airflow sends an event for each outlet that the task has when it ends, so outlets without an event are removed.
        """
        for line in lines_of(result, self._where):
            self.log.info("%s", visible(line))
        # In a retry, events are always sent, because the try before may have ended after its commit and before its events.
        if not is_retry(context) or result.get("on_hold"):
            self.outlets: list[Any] = [one for one in self.outlets if has_event(getattr(one, "extra", {}), result)]
        for asset in self.outlets:
            extra = told_of(asset.extra, asset.name, result) if isinstance(asset, Asset) else None
            if extra is not None:
                context["outlet_events"][asset].extra.update({**extra, "interval": interval_of(context)})


def openlineage_env(ti: Any, option: Callable[[str], str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of OpenLineage for the command of a task instance.

    ``option`` returns an option of the section ``[openlineage]``, or an empty text if it is not set. In that case, the command
    uses the variable that it inherits.
    """
    given = {variable: value for name, variable in _OPTIONS.items() if (value := option(name))}
    if option("disabled").strip().lower() in _TRUE:
        given["OPENLINEAGE_DISABLED"] = "true"
    if ti is None:
        return given
    namespace = given.get("OPENLINEAGE_NAMESPACE") or environ.get("OPENLINEAGE_NAMESPACE") or "default"
    task, dag = _ids(ti, namespace)
    return {**given, "OPENLINEAGE_PARENT_ID": task, "OPENLINEAGE_ROOT_PARENT_ID": dag}


def _check_bound(by: str) -> None:
    if by not in _BOUNDS:
        raise UsageError(
            "sensor-bound-unknown",
            "by={given!r}: use 'until' (an arrival time), 'through' (an event time) or 'nothing'",
            given=by,
        )


def _openlineage_option(name: str) -> str:
    return str(conf.get("openlineage", name, fallback=""))


def _last_due(dag: Any) -> datetime | None:
    """Return the end of the last interval of a DAG's schedule that is over; None if it is unknown.

    It is unknown on a worker that has only Airflow's task SDK. Then each DAG run of a backfill lands only its own interval.
    """
    try:
        from airflow.serialization.encoders import coerce_to_core_timetable  # noqa: PLC0415 - a part that may be missing
    except ImportError:
        return None
    timetable = coerce_to_core_timetable(getattr(dag, "timetable", None))
    infer = getattr(timetable, "infer_manual_data_interval", None)
    end: datetime | None = infer(run_after=pendulum.now("UTC")).end if infer else None
    return end


def _ids(ti: Any, namespace: str) -> tuple[str, str]:
    """Return the ids of the task's run and of the DAG's run as ``namespace/job/UUID``, from Airflow's provider if installed."""
    with suppress(Exception):  # the provider may be absent, or its functions may have other arguments
        from airflow.providers.openlineage.plugins import macros  # noqa: PLC0415 - another provider, which may be absent

        return macros.lineage_parent_id(ti), macros.lineage_root_parent_id(ti)
    run = f"{namespace}/{ti.dag_id}/{ti.run_id}"
    task = f"{run}/{ti.task_id}/{getattr(ti, 'map_index', -1)}/{ti.try_number}"
    names = ((f"{ti.dag_id}.{ti.task_id}", task), (str(ti.dag_id), run))
    found = [f"{namespace}/{job}/{uuid.uuid5(uuid.NAMESPACE_URL, text)}" for job, text in names]
    return found[0], found[1]
