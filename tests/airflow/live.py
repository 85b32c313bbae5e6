"""A complete Airflow on loopback: `airflow standalone` in its own session, controlled through its REST API."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import httpx
import psutil

from tests.airflow.home import AIRFLOW

START_SECONDS = 900
STOP_SECONDS = 10
LOOK_SECONDS = 5
PASSWORDS = "simple_auth_manager_passwords.json.generated"


class Live:
    """Scheduler, DAG processor, triggerer and API server, for the duration of the ``with`` block."""

    def __init__(self, env: dict[str, str], users: Mapping[str, str] | None = None) -> None:
        """Prepare an Airflow. ``users``: the role of each user by name; `client` speaks for them. Without, all are admins."""
        port, workers, triggers = free_ports(3)
        self.url = f"http://127.0.0.1:{port}"
        self._users = {"root": "admin", **users} if users else {}
        self.env = {
            **env,
            "AIRFLOW__API__PORT": port,
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": workers,
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": triggers,
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__CORE__PARALLELISM": "6",  # a killed worker still counts until its heartbeat times out
            "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": str(not users),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(
                f"{user}:{role}" for user, role in self._users.items()
            ),
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "PYTHONUNBUFFERED": "1",  # the log is not delayed by a buffer
            "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "airflow.jobs.scheduler_job_runner=INFO",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
        }
        self.log = Path(env["AIRFLOW_HOME"]) / "standalone.log"
        self._client: httpx.Client | None = None

    def __enter__(self) -> Self:
        self._started = [self._start("standalone")]
        try:
            self.until(self._answers, START_SECONDS, "the API to answer")
            self._client = self.client("root")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """Terminate, then kill all processes of this home. Rewindow's commands are among them: they outlive their workers."""
        if self._client:
            self._client.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + STOP_SECONDS
            for process in self.processes():
                with suppress(psutil.Error):
                    process.send_signal(number)
            while self.processes() and time.monotonic() < deadline:
                time.sleep(0.2)
        for started in self._started:
            started.wait()

    def client(self, user: str) -> httpx.Client:
        """Return a client of the REST API that speaks for a user."""
        if self._users:
            passwords = json.loads((Path(self.env["AIRFLOW_HOME"]) / PASSWORDS).read_text())
            login = {"username": user, "password": passwords[user]}
            answer = httpx.post(f"{self.url}/auth/token", json=login, timeout=300)
        else:
            answer = httpx.get(f"{self.url}/auth/token", timeout=300)
        headers = {"Authorization": f"Bearer {answer.json()['access_token']}"}
        return httpx.Client(base_url=f"{self.url}/api/v2", headers=headers, timeout=300)

    def _start(self, command: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [AIRFLOW, command],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def processes(self) -> list[psutil.Process]:
        """Return the processes in our sessions or with this home in their environment, and their children."""
        everyone = [process for process in psutil.process_iter(["ppid"]) if _runs(process)]
        sessions = {started.pid for started in self._started}
        found = {process.pid for process in everyone if self._is_ours(process, sessions)}
        while more := {process.pid for process in everyone if process.info["ppid"] in found} - found:
            found |= more
        return [process for process in everyone if process.pid in found]

    def _is_ours(self, process: psutil.Process, sessions: set[int]) -> bool:
        with suppress(psutil.Error, ProcessLookupError):
            return (
                os.getsid(process.pid) in sessions or process.environ().get("AIRFLOW_HOME") == self.env["AIRFLOW_HOME"]
            )
        return False

    def scheduler(self) -> psutil.Process | None:
        """Return the scheduler's process."""
        for process in self.processes():
            with suppress(psutil.Error):
                if process.cmdline()[-2:] == [AIRFLOW, "scheduler"]:
                    return process
        return None

    def get(self, path: str, **params: Any) -> Any:
        """Send a GET request."""
        return self._ask("GET", path, params=params)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Send a POST request."""
        return self._ask("POST", path, json=body)

    def patch(self, path: str, body: dict[str, Any]) -> Any:
        """Send a PATCH request."""
        return self._ask("PATCH", path, json=body)

    def refused(self, path: str, body: dict[str, Any]) -> str:
        """Send a POST request that must be refused, and return the answer."""
        assert self._client is not None
        answer = self._client.post(path, json=body)
        assert 400 <= answer.status_code < 500, f"{path} {body}: {answer.status_code} {answer.text[:500]}"
        return answer.text

    def tasks(self, dag: str, run: str) -> dict[str, dict[str, Any]]:
        """Return a run's task instances by name."""
        found = self.get(f"/dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"]
        return {task["task_id"]: task for task in found}

    def until(self, done: Callable[[], Any], seconds: float, what: str) -> Any:
        """Wait until ``done`` returns something true, and return it.

        A scheduler that died is restarted, as by a service manager. It can die when Airflow rolls a backfill back because
        SQLite was locked.
        """
        deadline, looked = time.monotonic() + seconds, time.monotonic()
        while True:
            found = done()
            if found:
                return found
            if time.monotonic() > deadline or self._started[0].poll() is not None:
                raise AssertionError(f"waited for {what}\n{self.log.read_text(errors='replace')[-4000:]}")
            if self._client and time.monotonic() > looked + LOOK_SECONDS:
                looked = time.monotonic()
                if self.scheduler() is None:
                    self._started.append(self._start("scheduler"))
            time.sleep(0.5)

    def _ask(self, method: str, path: str, **how: Any) -> Any:
        assert self._client is not None
        for _ in range(5):
            answer = self._client.request(method, path, **how)
            if answer.status_code < 500:  # SQLite is sometimes locked
                break
            time.sleep(1)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        return answer.json() if answer.content else None

    def _answers(self) -> bool:
        try:
            health = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=30).json()
        except (httpx.HTTPError, ValueError):
            return False
        return all(
            (health.get(part) or {}).get("status") == "healthy"
            for part in ("metadatabase", "scheduler", "dag_processor", "triggerer")
        )


def free_ports(number: int) -> list[str]:
    """Return free ports of loopback."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [str(one.getsockname()[1]) for one in sockets]


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
