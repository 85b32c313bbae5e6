"""Start a run of a Databricks job and follow it to its end, through the `databricks-sdk`, which is imported on use.

An idempotency token computed from job, parameters and caller identifies the run. So a caller that starts the run again finds
the active or successful run.

If the wheel task fails, its last line contains the exit code (`ended`). Databricks keeps this line as the task's error, and the
exit code is read from it. Databricks also keeps the last 5 MB of the task's logs, with everything that was written to stdout or
stderr. The result is in the last line with a JSON object that looks like the output of `rewindow run --json`, or of a failed
command.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from rewindow.errors import AccessError, ConfigError, NotNowError, RewindowError, StorageError, unrendered

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient
    from databricks.sdk.service.jobs import Run, RunOutput, RunTask


_POLL_SECONDS = 10.0
_TRIES = 20
"""At most this many runs with the same parameters are started, each after the previous one failed."""
_RETRY = "try again"
_RETRY_START = "try again, no run is started twice"
_RETRY_NEW = "look in the workspace whether the run is started, because each --new starts another one"
_FOLLOW = "submit again to follow it, or after --new look at it in the workspace"
_ACTIVE: Final = frozenset(["BLOCKED", "PENDING", "QUEUED", "RUNNING", "TERMINATING", "WAITING", "WAITING_FOR_RETRY"])
"""Life cycle states in which a run has not ended."""
_UNKNOWN_CODE: Final = 74
"""The exit code for a run that failed for an unknown reason. It asks for a retry, which is always safe."""
_CODES: Final = {
    "SUCCESS": 0,
    "SUCCESS_WITH_FAILURES": _UNKNOWN_CODE,  # a run with a failed task never counts as successful
    "CANCELED": 143,
    "UPSTREAM_CANCELED": 143,
    "TIMEDOUT": 75,
    "MAXIMUM_CONCURRENT_RUNS_REACHED": 75,
    "SKIPPED": 75,
    "DISABLED": 78,
}
_ENDED = re.compile(r"rewindow ended with (\d{1,3}):")
_OBJECT: Final = re.compile(r'\{"')
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class JobRun:
    """The state of a job run. ``code`` is the exit code, None until the run has ended."""

    run_id: int
    url: str
    state: str
    code: int | None = None
    message: str = ""


def workspace(profile: str | None = None, settings: Mapping[str, str] | None = None) -> WorkspaceClient:
    """Return a client of the workspace in the SDK's configuration (environment, ~/.databrickscfg).

    ``settings``: arguments of the SDK's client, such as ``host`` and ``token``, which override that configuration. Raises
    `ConfigError` (78) if the SDK is missing or no workspace is configured.
    """
    try:
        from databricks.sdk import WorkspaceClient  # noqa: PLC0415 - the extra, and slow to load
    except ImportError as error:
        raise ConfigError(
            "databricks-sdk-missing", "the Databricks SDK is missing: pip install 'rewindow[databricks]'"
        ) from error
    try:
        return WorkspaceClient(**(settings or {}), profile=profile, product="rewindow")
    except ValueError as error:
        first = str(error).strip().splitlines()[0]
        raise ConfigError(
            "databricks-workspace-missing",
            "no Databricks workspace is configured ({reason}): set DATABRICKS_HOST and a token, or --profile",
            reason=first,
        ) from error


def start(
    client: WorkspaceClient,
    job: str,
    parameters: Mapping[str, str],
    *,
    caller: Sequence[object] = (),
    new: bool = False,
    again: str = "use --new",
) -> JobRun:
    """Start a run of a job, given by name or id, or return the run that an earlier call started.

    Without ``new``, an active or successful run of the same job, parameters and ``caller`` is returned instead of a second one.
    ``again`` says, in words, how the caller starts another run after `_TRIES` runs have failed. Raises `ConfigError` (78) for
    an unknown or ambiguous job and after `_TRIES` failed runs, `UsageError` (2) for a parameter with an unrendered template,
    `AccessError` (77) and `StorageError` (74).
    """
    for name, value in parameters.items():
        if "{{" in value:
            raise unrendered(f"parameter {name}={value!r}")
    with errors():
        job_id = _job_id(client, job)
    # If no answer arrives, the SDK repeats the request. So even a ``new`` run needs a token.
    work = [job_id, sorted(parameters.items()), *caller, *([uuid4().hex] if new else [])]
    for number in range(1, _TRIES + 1):
        with errors(retry=_RETRY_NEW if new else _RETRY_START):
            given = client.jobs.run_now(job_id, job_parameters=dict(parameters), idempotency_token=_token(work, number))
        run = look(client, int(given.run_id), retry=f"run {given.run_id} is started, {_FOLLOW}")
        # For the token of a failed run, Databricks would return this run again and again.
        if new or run.code in {None, 0}:
            return run
    raise ConfigError(
        "databricks-runs-failed",
        "{job}: {runs} runs with these parameters failed, the last one is {url}. Fix the cause, then {fix}",
        job=job,
        runs=_TRIES,
        url=run.url,
        fix=again,
    )


def look(client: WorkspaceClient, run_id: int, *, retry: str = _RETRY) -> JobRun:
    """Return the current state of a run. If the run failed, the state contains the error of its first failed task.

    ``retry``: advice for the case that Databricks does not answer (`StorageError`, 74).
    """
    with errors(retry=retry):
        run = client.jobs.get_run(run_id)
        life_cycle, result, message = _state(run)
        if is_active(life_cycle):
            return JobRun(run_id, run.run_page_url or "", life_cycle, None, message)
        output = None if result == "SUCCESS" else _failed(client, run)
        task_error = (output.error if output else None) or ""
        code = exit_code(life_cycle, result, task_error)
        printed_error = error_in((output.logs if output else None) or "", code)
        reason = "\n".join(text for text in (printed_error, task_error) if text) or message
        return JobRun(run_id, run.run_page_url or "", result or life_cycle, code, reason)


def printed(client: WorkspaceClient, run_id: int) -> Printed:
    """Return the JSON that `run` printed in each task of a successful run. Errors of single tasks are returned, not raised."""
    results, missing = {}, {}
    with errors(retry=""):
        tasks = _last_attempts(client.jobs.get_run(run_id))
    for task in tasks:
        try:
            with errors(retry=""):
                output = client.jobs.get_run_output(int(task.run_id or 0))
        except RewindowError as error:
            missing[task.task_key] = str(error)
            continue
        result = result_in(output.logs or "")
        if result is None:
            missing[task.task_key] = _why_missing(output.logs, is_truncated=bool(output.logs_truncated))
        else:
            results[task.task_key] = result
    return Printed(results, missing)


def wait(
    client: WorkspaceClient,
    run_id: int,
    *,
    timeout_s: float | None = None,
    poll_s: float = _POLL_SECONDS,
    on_state: Callable[[JobRun], None] | None = None,
) -> JobRun:
    """Follow a run to its end. Raises `NotNowError` (75) after ``timeout_s`` seconds; the run then continues.

    ``on_state`` is called when the state of the run changes.
    """
    end = None if timeout_s is None else time.monotonic() + timeout_s
    seen = ""
    while True:
        run = look(client, run_id, retry=_FOLLOW)
        if on_state is not None and run.state != seen:
            on_state(run)
        seen = run.state
        if run.code is not None:
            return run
        if end is not None and time.monotonic() >= end:
            raise NotNowError(
                "databricks-run-still-active",
                "run {run} is still {state} after {timeout_s:g} s and continues: {fix}",
                run=run_id,
                state=run.state,
                timeout_s=timeout_s,
                fix=_FOLLOW,
            )
        time.sleep(poll_s)


def cancel(client: WorkspaceClient, run_id: int) -> None:
    """Cancel a run. The next run repeats the work that the cancelled run had not committed."""
    with errors():
        client.jobs.cancel_run(run_id)


@contextmanager
def errors(fix: str = "", *, retry: str = _RETRY) -> Iterator[None]:
    """Translate the SDK's errors in this block.

    ``fix``: advice if a request was refused or its object does not exist. ``retry``: advice if Databricks did not answer.
    """
    from databricks.sdk import errors as sdk  # noqa: PLC0415 - the extra, and slow to load

    try:
        yield
    except (sdk.PermissionDenied, sdk.Unauthenticated) as error:
        raise AccessError(
            "databricks-access-denied",
            "Databricks denied access: {reason}. {fix}",
            reason=str(error),
            fix=fix or "Check the token and its permission to run the job",
        ) from error
    except (sdk.NotFound, sdk.InvalidParameterValue, sdk.BadRequest) as error:
        raise ConfigError(
            "databricks-request-rejected",
            "Databricks: {reason}. {fix}",
            reason=str(error),
            fix=fix or "Check the id of the job and its parameters",
        ) from error
    except (sdk.DatabricksError, OSError, TimeoutError) as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise StorageError(
            "databricks-no-answer",
            "Databricks did not answer ({reason}){fix}",
            reason=first,
            fix=f": {retry}" if retry else "",
        ) from error


def ended(code: int, message: str) -> str:
    """Return the line with which a task of a Databricks job fails. `exit_code` reads the exit code from it."""
    return f"rewindow ended with {code}: {message}"


def is_active(life_cycle: str) -> bool:
    """Return whether a run in this state has not ended."""
    return life_cycle in _ACTIVE


def exit_code(life_cycle: str, result: str | None, error: str | None = None) -> int:
    """Return the exit code of a run that has ended. ``error`` is the error of the run's first failed task."""
    word = result or life_cycle
    if word in {"FAILED", "UPSTREAM_FAILED", "INTERNAL_ERROR", "SUCCESS_WITH_FAILURES"}:
        match = _ENDED.search(error or "")
        return int(match[1]) if match and int(match[1]) else _UNKNOWN_CODE
    return _CODES.get(word, _UNKNOWN_CODE)


@dataclass(frozen=True, slots=True)
class Printed:
    """The results of a job run's tasks, by task key, and the reasons why other tasks have no result."""

    results: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def result_in(logs: str) -> dict[str, Any] | None:
    """Return the JSON object that `run` printed in the logs of a Databricks task; None if it printed none."""
    return _last(logs, '"published"', lambda found: isinstance(found.get("published"), list) and "run" in found)


def error_in(logs: str, code: int) -> str | None:
    """Return the message of the command that failed with this exit code; None if the logs have none."""
    found = _last(logs, '"exit_code"', lambda found: found.get("exit_code") == code and "error" in found)
    return None if found is None else str(found["error"])


def _job_id(client: WorkspaceClient, job: str) -> int:
    if job.isdigit():
        return int(job)
    found = [one.job_id for one in client.jobs.list(name=job) if one.job_id is not None]
    if len(found) != 1:
        raise ConfigError(
            "databricks-job-not-unique",
            "the workspace has {found} called {job!r}: deploy the bundle, or use the job's id",
            found=f"{len(found)} jobs" if found else "no job",
            job=job,
        )
    return int(found[0])


def _token(work: Sequence[object], number: int) -> str:
    text = json.dumps([*work, number])
    return f"rewindow-{blake2b(text.encode(), digest_size=16).hexdigest()}"  # 64 characters at most


def _state(run: Run) -> tuple[str, str | None, str]:
    state = run.state
    if state is None or state.life_cycle_state is None:
        return "PENDING", None, ""
    result = state.result_state.value if state.result_state else None
    return state.life_cycle_state.value, result, state.state_message or ""


def _failed(client: WorkspaceClient, run: Run) -> RunOutput | None:
    """Return the output of the first task that failed by itself. A job run has no output, only its tasks have."""
    for task in _last_attempts(run):
        failed = task.state and task.state.result_state and task.state.result_state.value == "FAILED"
        if failed and task.run_id is not None:
            return client.jobs.get_run_output(task.run_id)
    return None


def _last_attempts(run: Run) -> list[RunTask]:
    """Return the last attempt of each task of a run. A run may list several attempts of a retried task."""
    last: dict[str, RunTask] = {}
    for task in run.tasks or ():
        known = last.get(task.task_key)
        if known is None or (task.attempt_number or 0) >= (known.attempt_number or 0):
            last[task.task_key] = task
    return list(last.values())


def _why_missing(logs: str | None, *, is_truncated: bool) -> str:
    """Return why there is no result in a task's logs."""
    if not logs:
        return "Databricks has no logs of the task"
    if is_truncated:
        return "Databricks keeps the last 5 MB of a task's logs, and the result is not in them"
    return "the task's logs contain no result: check that the deployed wheel has this version"


def _last(logs: str, word: str, is_ours: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    for line in reversed(logs.split("\n")):
        if word in line:
            for found in _objects(line):
                if is_ours(found):
                    return found
    return None


def _objects(line: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a line. The line may also contain output of other streams."""
    end = 0
    for begin in _OBJECT.finditer(line):
        if begin.start() < end:
            continue  # it is part of the previous object
        try:
            found, end = _DECODER.raw_decode(line, begin.start())
        except (ValueError, RecursionError):
            continue
        yield found
