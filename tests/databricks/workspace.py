"""A workspace on loopback: the six REST calls that rewindow uses, and runs whose outcome a test decides."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

ENDED = ("TERMINATED", "INTERNAL_ERROR", "SKIPPED")


@dataclass
class Workspace:
    """The workspace's data. ``story`` lists the states (life cycle, result) of a run, one per poll."""

    story: Sequence[tuple[str, str | None]] = (("PENDING", None), ("RUNNING", None), ("TERMINATED", "SUCCESS"))
    error: str = ""
    outputs: dict[str, dict[str, Any]] = field(default_factory=lambda: {"run": {}})
    """Output of each task: ``logs`` and ``logs_truncated``, or ``error_code`` if there is none."""
    outputs_of: dict[int, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """The same by run id."""
    attempts: int = 1
    """Number of attempts of each task. All but the last fail and print other output."""
    jobs: dict[int, str] = field(default_factory=lambda: {11: "hourly_departures"})
    runs: dict[int, list[tuple[str, str | None]]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    tokens: dict[str, int] = field(default_factory=dict)
    secrets: dict[tuple[str, str], str] = field(default_factory=dict)
    refuses: int = 0
    breaks: dict[str, int] = field(default_factory=dict)
    """Number of next answers that are lost after the work is done, by the end of a call's path."""
    fails: str = ""
    """The end of the path of a call that ends with an internal error instead of an answer."""
    host: str = ""

    def answer(self, method: str, path: str, given: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return status and body."""
        self.asked.append((path, given))
        if self.refuses:
            return self.refuses, {"error_code": "PERMISSION_DENIED", "message": "no right to do this"}
        if self.fails and path.endswith(self.fails):
            return 500, {"error_code": "INTERNAL_ERROR", "message": "the service is down"}
        match method, path.split("/", 3)[3]:
            case "GET", "jobs/list":
                found: list[dict[str, Any]] = [
                    {"job_id": job_id, "settings": {"name": name}} for job_id, name in self.jobs.items()
                ]
                return 200, {"jobs": [job for job in found if job["settings"]["name"] == given.get("name")]}
            case "POST", "jobs/run-now":
                if given["job_id"] not in self.jobs:
                    return 400, {
                        "error_code": "INVALID_PARAMETER_VALUE",
                        "message": f"Job {given['job_id']} does not exist.",
                    }
                token = given.get("idempotency_token")
                if token is None or token not in self.tokens:
                    run_id = 100 + len(self.runs)
                    self.runs[run_id] = list(self.story)
                    if token:
                        self.tokens[token] = run_id
                    return 200, {"run_id": run_id}
                return 200, {"run_id": self.tokens[token]}
            case "GET", "jobs/runs/get":
                if int(given["run_id"]) not in self.runs:
                    message = f"Run {given['run_id']} does not exist."
                    return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": message}
                return 200, self._run(int(given["run_id"]))
            case "POST", "jobs/runs/cancel":
                self.runs[int(given["run_id"])] = [("TERMINATED", "CANCELED")]
                return 200, {}
            case "GET", "secrets/get":
                value = self.secrets.get((given["scope"], given["key"]))
                if value is None:
                    message = f"No secret exists with scope: {given['scope']} and key: {given['key']}"
                    return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": message}
                return 200, {"key": given["key"], "value": b64encode(value.encode()).decode()}
            case "GET", "jobs/runs/get-output":
                return self._output(int(given["run_id"]))
        return 404, {"error_code": "ENDPOINT_NOT_FOUND", "message": path}

    def _run(self, run_id: int) -> dict[str, Any]:
        story = self.runs[run_id]
        life_cycle, result = story.pop(0) if len(story) > 1 else story[0]
        state = {"life_cycle_state": life_cycle, "state_message": "", **({"result_state": result} if result else {})}
        failed = {"life_cycle_state": "TERMINATED", "result_state": "FAILED", "state_message": ""}
        return {
            "run_id": run_id,
            "run_page_url": f"{self.host}/#job/11/run/{run_id}",
            "state": state,
            "tasks": [
                {
                    "task_key": task,
                    "run_id": 1000 * (1 + index) + 10_000 * attempt + run_id,
                    "attempt_number": attempt,
                    "state": state if attempt == self.attempts - 1 else failed,
                }
                for index, task in enumerate(self.outputs_of.get(run_id, self.outputs))
                for attempt in range(self.attempts)
            ],
        }

    def _output(self, task_run: int) -> tuple[int, dict[str, Any]]:
        """Return the output of an attempt of a task. A job run itself has no output."""
        attempt, rest = divmod(task_run, 10_000)
        index, run_id = rest // 1000 - 1, rest % 1000
        if index < 0 or run_id not in self.runs:
            return 400, {
                "error_code": "INVALID_PARAMETER_VALUE",
                "message": "Retrieving the output of runs is not supported",
            }
        if attempt < self.attempts - 1:
            return 200, {"error": "Killed", "logs": '{"run": null, "published": []}\n'}
        kept = list(self.outputs_of.get(run_id, self.outputs).values())[index]
        return (400, kept) if "error_code" in kept else (200, {"error": self.error, **kept})


@contextmanager
def workspace() -> Iterator[Workspace]:
    """Serve a workspace."""
    made = Workspace()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            self._say(parts.path, {name: values[0] for name, values in parse_qs(parts.query).items()})

        def do_POST(self) -> None:
            self._say(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _say(self, path: str, given: dict[str, Any]) -> None:
            if not path.startswith("/api/"):
                status, body = 404, {"message": "the SDK asks what kind of host this is"}
            elif self.headers["Authorization"] != "Bearer token":
                status, body = 401, {"error_code": "UNAUTHENTICATED", "message": "no token"}
            else:
                status, body = made.answer(self.command, path, given)
                for call in made.breaks:
                    if path.endswith(call) and made.breaks[call]:
                        made.breaks[call] -= 1
                        self.close_connection = True
                        return  # the client sees a connection that ends without an answer
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.host = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
