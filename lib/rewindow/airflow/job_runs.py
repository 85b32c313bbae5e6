"""`RewindowJobRunOperator`: the same work as a run of a Databricks job, found again by a retry, waited for in the triggerer.

The job is the bundle's (README, "On Databricks"); its parameter ``interval_end`` says where it stops. The library starts it
under a token that says what it is to do, so a retry never starts the same work twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from airflow.sdk import Asset, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from rewindow.airflow.asset_events import extra_of
from rewindow.airflow.compat import ResumableJobMixin
from rewindow.airflow.exit_codes import Next, what_next
from rewindow.airflow.intervals import interval_of, through_of
from rewindow.airflow.outcomes import raise_for_exit
from rewindow.databricks import submit
from rewindow.databricks.results import Printed
from rewindow.errors import RewindowError, StorageError

_RUNNING = "running"


class JobRunTrigger(BaseTrigger):
    """Looks at a job run every ``poll_s`` seconds; fires when it has ended."""

    def __init__(self, *, run_id: int, profile: str | None = None, poll_s: float = 30.0) -> None:
        super().__init__()
        self.run_id = run_id
        self.profile = profile
        self.poll_s = poll_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return where the class is, and its arguments."""
        given = {"run_id": self.run_id, "profile": self.profile, "poll_s": self.poll_s}
        return f"{type(self).__module__}.{type(self).__qualname__}", given

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: the run's id. How it ended the task asks itself, with its own rights."""
        while True:
            try:
                if (await asyncio.to_thread(self._look)).code is not None:
                    break
            except StorageError as error:  # the next look may work
                self.log.warning("%s", error)
            except RewindowError:
                break  # the task meets it too, and says it
            await asyncio.sleep(self.poll_s)
        yield TriggerEvent({"run_id": self.run_id})

    async def on_kill(self) -> None:
        """Ask for the run to end when somebody stops, clears or marks the task while it waits here."""
        await asyncio.to_thread(lambda: submit.cancel(submit.workspace(self.profile), self.run_id))

    def _look(self) -> submit.JobRun:
        return submit.look(submit.workspace(self.profile), self.run_id)


class RewindowJobRunOperator(ResumableJobMixin, BaseOperator):
    """Lands and runs a job up to the end of the DAG run's interval, as a run of a Databricks job.

    Args:
        databricks_job: The job's name or id in the workspace.
        parameters: More of its parameters; ``interval_end`` is filled in if the DAG run has an interval.
        profile: Of ``~/.databrickscfg``; default: the SDK's environment variables.
        deferrable: Wait in the triggerer, which takes no worker's slot.
        poll_s: Seconds between two looks.

    Exit codes are those of the command in the job run, and mean what they mean to `RewindowOperator`. The result is the
    run's id, address and state, and in ``results``, by task of the run, what `run` printed there as JSON. The events of
    the outlets say of it what they say after a `RewindowOperator`; where Databricks keeps no logs of the task, they have
    the run and the interval only, and a warning says so.
    """

    template_fields = ("databricks_job", "parameters", "profile")
    external_id_key = "rewindow_job_run"
    ui_color = "#fbe3d6"

    def __init__(
        self,
        *,
        databricks_job: str,
        parameters: Mapping[str, str] | None = None,
        profile: str | None = None,
        deferrable: bool = False,
        poll_s: float = 30.0,
        retries: int = 5,
        **kwargs: Any,
    ) -> None:
        super().__init__(retries=retries, **kwargs)
        self.databricks_job = databricks_job
        self.parameters = dict(parameters or {})
        self.profile = profile
        self.deferrable = deferrable
        self.poll_s = poll_s
        self._run_id: int | None = None

    def execute(self, context: Any) -> dict[str, Any]:
        """Start the run, or find the one that an earlier try has started; wait for its end."""
        result: dict[str, Any] = self.execute_resumable(context)
        return self._told(context, result)

    def execute_complete(self, context: Any, event: Mapping[str, Any]) -> dict[str, Any]:
        """Go on when the trigger has fired."""
        return self._told(context, self._settled(self._seen(int(event["run_id"])), context))

    def submit_job(self, context: Any) -> int:
        """Start the run."""
        end = through_of(context)
        given = {**({"interval_end": end} if end else {}), **self.parameters}
        try:
            run = submit.start(submit.workspace(self.profile), self.databricks_job, given)
        except RewindowError as error:
            raise_for_exit(context, error.exit_code, str(error))
            raise  # `raise_for_exit` has
        self.log.info("%s: run %s %s", self.databricks_job, run.run_id, run.url)
        self._run_id = run.run_id
        return run.run_id

    def get_job_status(self, external_id: Any, context: Any) -> str:
        """Return ``running`` or the exit code."""
        del context
        code = self._seen(int(external_id)).code
        return _RUNNING if code is None else str(code)

    def is_job_active(self, status: str) -> bool:
        """Whether it still runs."""
        return status == _RUNNING

    def is_job_succeeded(self, status: str) -> bool:
        """Whether it has done its work."""
        return status != _RUNNING and what_next(int(status)) is Next.DONE

    def poll_until_complete(self, external_id: Any, context: Any) -> dict[str, Any]:
        """Wait for the end, here or in the triggerer. Raises for a retry or a failure."""
        self._run_id = int(external_id)
        while (run := self._seen(self._run_id)).code is None:
            if self.deferrable:
                trigger = JobRunTrigger(run_id=self._run_id, profile=self.profile, poll_s=self.poll_s)
                self.defer(trigger=trigger, method_name="execute_complete", timeout=self.execution_timeout)
            time.sleep(self.poll_s)
        return self._settled(run, context)

    def get_job_result(self, external_id: Any, context: Any) -> dict[str, Any]:
        """Return the run's id and address."""
        return self._settled(self._seen(int(external_id)), context)

    def on_kill(self) -> None:
        """Ask for the run to end when the task is stopped."""
        if self._run_id is not None:
            submit.cancel(submit.workspace(self.profile), self._run_id)

    def _seen(self, run_id: int) -> submit.JobRun:
        try:
            return submit.look(submit.workspace(self.profile), run_id)
        except RewindowError as error:
            kind = AirflowException if what_next(error.exit_code) is Next.RETRY else AirflowFailException
            raise kind(str(error)) from error

    def _settled(self, run: submit.JobRun, context: Any) -> dict[str, Any]:
        raise_for_exit(context, run.code, f"{run.url}\n{run.message}".strip())
        return {"run_id": run.run_id, "url": run.url, "state": run.state}

    def _told(self, context: Any, result: dict[str, Any]) -> dict[str, Any]:
        """Write on each asset that this task updates what its table is now; return the result with what was printed."""
        printed = self._printed(result["run_id"])
        for asset in self.outlets:
            extra = extra_of(asset.name, printed.results.values()) if isinstance(asset, Asset) else None
            if extra is None and isinstance(asset, Asset):
                why = "; ".join(f"{task}: {why}" for task, why in printed.missing.items())
                self.log.warning(
                    "The event of %s has no version and digest: %s",
                    asset.name,
                    why or "the job run wrote no such table",
                )
            context["outlet_events"][asset].extra.update({**result, **(extra or {}), "interval": interval_of(context)})
        return {**result, "results": dict(printed.results)}

    def _printed(self, run_id: int) -> Printed:
        """Return what the run's tasks printed. The work is done: that it cannot be read does not undo it."""
        try:
            return submit.printed(submit.workspace(self.profile), run_id)
        except RewindowError as error:
            return Printed(missing={f"run {run_id}": str(error)})
