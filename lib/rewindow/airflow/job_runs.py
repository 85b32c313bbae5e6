"""`RewindowJobRunOperator`: land and run as a run of a Databricks job. The triggerer waits for the job run.

The job is deployed with the bundle (docs/deployment/databricks.md). Its parameter ``interval_end`` is the time at which the job
run stops. A retry finds the job run by an idempotency token, so it does not start the same work twice. The token is computed
from the parameters, the task and its DAG run. In another DAG run, or after a clear, the task has another token and starts a new
job run. So the id of the job run need not be stored where people could edit it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from airflow.sdk import Asset, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from rewindow.airflow.dag_run import interval_of, is_retry, through_of, work_of
from rewindow.airflow.exit_exceptions import raise_for_exit
from rewindow.airflow.hooks import WorkspaceHook
from rewindow.airflow.links import DatabricksRunLink
from rewindow.airflow.task_results import TABLE, did_nothing, extra_of, lines_of
from rewindow.contracts.exit_codes import Next, what_next
from rewindow.databricks import submit
from rewindow.databricks.submit import Printed
from rewindow.errors import RewindowError, StorageError, visible


class JobRunTrigger(BaseTrigger):
    """A trigger that polls a job run every ``poll_s`` seconds and fires when the job run has ended."""

    def __init__(
        self, *, run_id: int, profile: str | None = None, conn_id: str | None = None, poll_s: float = 30.0
    ) -> None:
        super().__init__()
        self.run_id = run_id
        self.profile = profile
        self.conn_id = conn_id
        self.poll_s = poll_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the path of the class and its arguments."""
        given = {name: getattr(self, name) for name in ("run_id", "profile", "conn_id", "poll_s")}
        return f"{type(self).__module__}.{type(self).__qualname__}", given

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event with the run's id. The task then reads how the run ended."""
        while True:
            try:
                if (await asyncio.to_thread(submit.look, await self._workspace(), self.run_id)).code is not None:
                    break
            except StorageError as error:  # the next poll may succeed
                self.log.warning("%s", error)
            except RewindowError:
                break  # the task gets the same error and reports it
            await asyncio.sleep(self.poll_s)
        yield TriggerEvent({"run_id": self.run_id})

    async def on_kill(self) -> None:
        """Cancel the run if the task is stopped, cleared or marked while it is deferred."""
        await asyncio.to_thread(submit.cancel, await self._workspace(), self.run_id)

    async def _workspace(self) -> Any:
        return await WorkspaceHook(self.conn_id, self.profile).aget_conn()


class RewindowJobRunOperator(BaseOperator):
    """Lands and runs a job up to the end of the DAG run's interval, as a run of a Databricks job.

    Args:
        databricks_job: The job's name or id in the workspace.
        parameters: More job parameters; ``interval_end`` is set if the DAG run has an interval.
        profile: Profile of ``~/.databrickscfg``. Default: the SDK's environment variables.
        conn_id: The Airflow connection of the workspace, of the type ``databricks``; see `hooks.WorkspaceHook`.
        deferrable: Wait in the triggerer, which occupies no worker slot.
        poll_s: Seconds between two polls.

    All tries of a task follow one job run, and start another job run if that one failed. A task that was cleared starts a new
    job run, because people clear a task to repeat it.

    The task has the exit code of the command in the job run, with the same effect as for `RewindowOperator`. The result holds
    the run's id, URL and state, and in ``results`` a mapping from task of the job run to the JSON that `run` printed. The
    outlets get the same events as those of a `RewindowOperator`. If Databricks has no logs of the task, the events hold only
    the run and the interval, and the task logs a warning.
    """

    template_fields = ("databricks_job", "parameters", "profile", "conn_id")
    operator_extra_links = (DatabricksRunLink(),)
    ui_color = "#fbe3d6"

    def __init__(
        self,
        *,
        databricks_job: str,
        parameters: Mapping[str, str] | None = None,
        profile: str | None = None,
        conn_id: str | None = None,
        deferrable: bool = False,
        poll_s: float = 30.0,
        retries: int = 5,
        **kwargs: Any,
    ) -> None:
        super().__init__(retries=retries, **kwargs)
        self.databricks_job = databricks_job
        self.parameters = dict(parameters or {})
        self.profile = profile
        self.conn_id = conn_id
        self.deferrable = deferrable
        self.poll_s = poll_s
        self.run_url: str | None = None
        """The page of the run, once it is known."""
        self._run_id: int | None = None

    def execute(self, context: Any) -> dict[str, Any]:
        """Start the job run, or find the job run that an earlier try started, and wait until it ends."""
        run = self._start(context)
        while run.code is None:
            if self.deferrable:
                trigger = JobRunTrigger(
                    run_id=run.run_id, profile=self.profile, conn_id=self.conn_id, poll_s=self.poll_s
                )
                self.defer(trigger=trigger, method_name="execute_complete", timeout=self.execution_timeout)
            time.sleep(self.poll_s)
            run = self._look(run.run_id)
        return self._publish_events(context, self._result_of(run, context))

    def execute_complete(self, context: Any, event: Mapping[str, Any]) -> dict[str, Any]:
        """Resume after the trigger has fired."""
        return self._publish_events(context, self._result_of(self._look(int(event["run_id"])), context))

    def on_kill(self) -> None:
        """Cancel the job run when the task is stopped."""
        if self._run_id is not None:
            submit.cancel(self._workspace(), self._run_id)

    def _workspace(self) -> Any:
        return WorkspaceHook(self.conn_id, self.profile).get_conn()

    def _start(self, context: Any) -> submit.JobRun:
        """Start the job run, or return the job run that an earlier try started."""
        end = through_of(context)
        given = {**({"interval_end": end} if end else {}), **self.parameters}
        try:
            run = submit.start(
                self._workspace(), self.databricks_job, given, caller=work_of(context), again="clear this task"
            )
        except RewindowError as error:
            raise_for_exit(context, error.exit_code, str(error))
            raise  # unreachable: `raise_for_exit` raises for every error code
        self.log.info("%s", visible(f"{self.databricks_job}: run {run.run_id} {run.url}"))
        self._run_id, self.run_url = run.run_id, run.url
        return run

    def _look(self, run_id: int) -> submit.JobRun:
        try:
            run = submit.look(self._workspace(), run_id)
        except RewindowError as error:
            kind = AirflowException if what_next(error.exit_code) is Next.RETRY else AirflowFailException
            raise kind(str(error)) from error
        self.run_url = run.url
        return run

    def _result_of(self, run: submit.JobRun, context: Any) -> dict[str, Any]:
        raise_for_exit(context, run.code, f"{run.url}\n{run.message}".strip())
        return {"run_id": run.run_id, "url": run.url, "state": run.state}

    def _publish_events(self, context: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Describe the updated tables in the events of their assets. Return the result with the printed JSON added.

        As with `RewindowOperator`, no event is sent if the job run certainly found nothing to do.
        """
        printed = self._printed(result["run_id"])
        found = printed.results.values()
        for line in (line for one in found for line in lines_of(one)):
            self.log.info("%s", visible(line))
        is_idle = not printed.missing and all(map(did_nothing, found)) and not is_retry(context)
        if found and (is_idle or any(one.get("on_hold") for one in found)):
            self.outlets: list[Any] = []
        for asset in self.outlets:
            extra = extra_of(asset.extra.get(TABLE, asset.name), found) if isinstance(asset, Asset) else None
            if extra is None and isinstance(asset, Asset):
                reasons = "; ".join(f"{task}: {reason}" for task, reason in printed.missing.items())
                self.log.warning(
                    "The event of %s has no version and digest: %s",
                    asset.name,
                    reasons or "the job run did not write this table",
                )
            context["outlet_events"][asset].extra.update({**result, **(extra or {}), "interval": interval_of(context)})
        return {**result, "results": dict(printed.results)}

    def _printed(self, run_id: int) -> Printed:
        """Return what the tasks of the job run printed.

        An error here does not fail the Airflow task, because its work is done.
        """
        try:
            return submit.printed(self._workspace(), run_id)
        except RewindowError as error:
            return Printed(missing={f"run {run_id}": str(error)})
