"""Start a run of a Databricks job and follow it to its end, through the `databricks-sdk`.

Nothing here imports the SDK before it is used. A run is started under a token that says what it is to do; a caller that
died and starts it again finds the run that is under way, or that has done it already.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from rewindow.databricks.outcome import exit_code, is_active
from rewindow.databricks.results import Printed, error_in, result_in, why_missing
from rewindow.errors import AccessError, ConfigError, NotNowError, RewindowError, StorageError, UsageError

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient
    from databricks.sdk.service.jobs import Run, RunOutput, RunTask

POLL_SECONDS = 10.0
TRIES = 20
"""How often one and the same thing may be started, each time after the run before has failed."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """A job run as it was last seen. ``code`` is None until it has ended."""

    run_id: int
    url: str
    state: str
    code: int | None = None
    message: str = ""


def workspace(profile: str | None = None) -> WorkspaceClient:
    """Return a client of the workspace that the SDK's own configuration names (environment, ~/.databrickscfg).

    Raises `ConfigError` (78) if the SDK is missing or nothing is configured.
    """
    try:
        from databricks.sdk import WorkspaceClient  # noqa: PLC0415 - the extra, and slow to load
    except ImportError as error:
        raise ConfigError("Databricks needs its SDK: pip install 'rewindow[databricks]'") from error
    try:
        return WorkspaceClient(profile=profile, product="rewindow", product_version="0.1")
    except ValueError as error:
        first = str(error).strip().splitlines()[0]
        message = f"no Databricks workspace is configured ({first}): set DATABRICKS_HOST and a token, or --profile"
        raise ConfigError(message) from error


def start(client: WorkspaceClient, job: str, parameters: Mapping[str, str], *, new: bool = False) -> JobRun:
    """Start a run of the job that is called ``job`` (or has this id), or find the one that does the same.

    The same job with the same parameters is the same thing: while it runs, or when it has ended well, no other is
    started. ``new`` starts one all the same. Raises `ConfigError` (78) for a job that is not there once,
    `UsageError` (2) for a parameter with a template left in it, `AccessError` (77), `StorageError` (74).
    """
    for name, value in parameters.items():
        if "{{" in value:
            raise UsageError(
                f"the parameter {name}={value!r} still has a template in it: the scheduler did not fill it in"
            )
    with _errors():
        job_id = _job_id(client, job)
        for number in range(1, TRIES + 1):
            token = None if new else _token(job_id, parameters, number)
            given = client.jobs.run_now(job_id, job_parameters=dict(parameters), idempotency_token=token)
            run = look(client, int(given.run_id))
            # Under a token of a run that has failed, Databricks gives that run again, for ever.
            if new or run.code in {None, 0}:
                return run
    raise NotNowError(f"{job}: this was started {TRIES} times and failed each time: see {run.url}, then use --new")


def look(client: WorkspaceClient, run_id: int) -> JobRun:
    """Return how a run stands now; of one that has failed also what its first failed task said."""
    with _errors():
        run = client.jobs.get_run(run_id)
        life_cycle, result, message = _state(run)
        if is_active(life_cycle):
            return JobRun(run_id, run.run_page_url or "", life_cycle, None, message)
        output = None if result == "SUCCESS" else _failed(client, run)
        said = (output.error if output else None) or ""
        code = exit_code(life_cycle, result, said)
        own_words = error_in((output.logs if output else None) or "", code)
        told = "\n".join(text for text in (own_words, said) if text) or message
        return JobRun(run_id, run.run_page_url or "", result or life_cycle, code, told)


def printed(client: WorkspaceClient, run_id: int) -> Printed:
    """Return what `run` printed in each task of a run that has ended well. Raises as `look` does, not for a task's output."""
    results, missing = {}, {}
    with _errors():
        tasks = _last_attempts(client.jobs.get_run(run_id))
    for task in tasks:
        try:
            with _errors():
                output = client.jobs.get_run_output(int(task.run_id or 0))
        except RewindowError as error:
            missing[task.task_key] = str(error)
            continue
        result = result_in(output.logs or "")
        if result is None:
            missing[task.task_key] = why_missing(output.logs, is_truncated=bool(output.logs_truncated))
        else:
            results[task.task_key] = result
    return Printed(results, missing)


def wait(
    client: WorkspaceClient,
    run_id: int,
    *,
    timeout_s: float | None = None,
    poll_s: float = POLL_SECONDS,
    on_state: Callable[[JobRun], None] | None = None,
) -> JobRun:
    """Follow a run to its end. Raises `NotNowError` (75) when the time is over; the run goes on."""
    end = None if timeout_s is None else time.monotonic() + timeout_s
    seen = ""
    while True:
        run = look(client, run_id)
        if on_state is not None and run.state != seen:
            on_state(run)
        seen = run.state
        if run.code is not None:
            return run
        if end is not None and time.monotonic() >= end:
            raise NotNowError(
                f"run {run_id} is {run.state} after {timeout_s:g} s and goes on: submit again to follow it"
            )
        time.sleep(poll_s)


def cancel(client: WorkspaceClient, run_id: int) -> None:
    """Ask for a run to end. What it had not committed is done again by the next."""
    with _errors():
        client.jobs.cancel_run(run_id)


def _job_id(client: WorkspaceClient, job: str) -> int:
    if job.isdigit():
        return int(job)
    found = [one.job_id for one in client.jobs.list(name=job) if one.job_id is not None]
    if len(found) != 1:
        seen = "no job" if not found else f"{len(found)} jobs"
        raise ConfigError(f"the workspace has {seen} called {job!r}: deploy the bundle, or give the job's id")
    return int(found[0])


def _token(job_id: int, parameters: Mapping[str, str], number: int) -> str:
    text = json.dumps([job_id, sorted(parameters.items()), number])
    return f"rewindow-{blake2b(text.encode(), digest_size=16).hexdigest()}"  # 64 characters at most


def _state(run: Run) -> tuple[str, str | None, str]:
    state = run.state
    if state is None or state.life_cycle_state is None:
        return "PENDING", None, ""
    result = state.result_state.value if state.result_state else None
    return state.life_cycle_state.value, result, state.state_message or ""


def _failed(client: WorkspaceClient, run: Run) -> RunOutput | None:
    """Return the output of the first task that failed by itself: outputs belong to tasks, not to runs of jobs."""
    for task in _last_attempts(run):
        failed = task.state and task.state.result_state and task.state.result_state.value == "FAILED"
        if failed and task.run_id is not None:
            return client.jobs.get_run_output(task.run_id)
    return None


def _last_attempts(run: Run) -> list[RunTask]:
    """Return a run's tasks, each as it was tried last: a task that was retried may be there once for each attempt."""
    last: dict[str, RunTask] = {}
    for task in run.tasks or ():
        known = last.get(task.task_key)
        if known is None or (task.attempt_number or 0) >= (known.attempt_number or 0):
            last[task.task_key] = task
    return list(last.values())


@contextmanager
def _errors() -> Iterator[None]:
    from databricks.sdk import errors  # noqa: PLC0415 - the extra, and slow to load

    try:
        yield
    except (errors.PermissionDenied, errors.Unauthenticated) as error:
        raise AccessError(f"Databricks refused: {error}. Check the token, and that it may run the job") from error
    except (errors.NotFound, errors.InvalidParameterValue, errors.BadRequest) as error:
        raise ConfigError(f"Databricks: {error}. Check the job's id and its parameters") from error
    except (errors.DatabricksError, OSError, TimeoutError) as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise StorageError(f"Databricks did not answer ({first}): run again, nothing is started twice") from error
