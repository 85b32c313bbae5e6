"""Sends events to OpenLineage from a separate thread, so that a command does not wait for a consumer while it works."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from rewindow.app.failures import Failure
from rewindow.app.telemetry.announce import Warner
from rewindow.app.telemetry.command_facts import NOTHING, Facts, Operation
from rewindow.app.telemetry.openlineage_names import PARENT, ROOT, caller_in
from rewindow.contracts.staged_files import TaskReport


class EventObserver:
    """An observer that sends START, COMPLETE, FAIL and ABORT.

    START names the tables, so it is sent once the tables are known.
    """

    def __init__(self) -> None:
        self.warner = Warner("OpenLineage")
        self._planned: dict[str, Facts] = {}
        self._started: set[str] = set()
        self._sender = _Sender(self.warner)
        for name in (PARENT, ROOT):
            if os.environ.get(name, "").strip() and caller_in(os.environ, name) is None:
                self.warner.warn(f"{name} names no run: write it like namespace/job/UUID")

    def began(self, operation: Operation) -> None:
        """Send START of the operation's parent, if it was not sent yet. It must precede START of the operation itself."""
        if operation.parent is not None:
            self._start(operation.parent)

    def planned(self, operation: Operation, facts: Facts) -> None:
        """Send START with the tables."""
        self._planned[operation.id] = facts
        self._start(operation)

    def step(self, operation: Operation, step: str) -> None:
        """Do nothing: events are sent only for operations, not for steps."""

    def task(self, operation: Operation, report: TaskReport) -> None:
        """Do nothing: events are sent only for operations, not for tasks."""

    def ended(self, operation: Operation, facts: Facts) -> None:
        """Send COMPLETE with what was read and written."""
        self._start(operation)
        self._sender.send("COMPLETE", operation, _now_ms(), facts)

    def failed(self, operation: Operation, failure: Failure) -> None:
        """Send FAIL, or ABORT after Ctrl-C, with the message that the user sees. Nothing was committed to the tables."""
        self._start(operation)
        state = "ABORT" if failure.was_interrupted else "FAIL"
        self._sender.send(state, operation, _now_ms(), self._planned.get(operation.id, NOTHING), failure)

    def flush(self) -> None:
        """Wait until the events are delivered, but only a few seconds."""
        self._sender.flush(self.warner.patience_s)

    def _start(self, operation: Operation) -> None:
        if operation.id in self._started:
            return
        if operation.parent is not None:
            self._start(operation.parent)
        self._started.add(operation.id)
        self._sender.send("START", operation, operation.began_ms, self._planned.get(operation.id, NOTHING))


class _Sender:
    """A daemon thread with a queue of events.

    The thread also imports OpenLineage's client while the command works, because the import takes as long as a small run.
    """

    def __init__(self, warner: Warner) -> None:
        self._warner = warner
        self._queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._client: Any = None

    def send(self, state: str, operation: Operation, at_ms: int, facts: Facts, failure: Failure | None = None) -> None:
        """Queue an event."""

        def deliver() -> None:
            from rewindow.app.telemetry.openlineage_events import event  # noqa: PLC0415 - imports the client

            self._open().emit(event(state, operation, at_ms, facts, failure))

        self._put(deliver)

    def flush(self, limit_s: float) -> None:
        """Wait until the queue is empty and the client has delivered everything, at most ``limit_s`` seconds."""
        if self._thread is None:
            return
        done = threading.Event()

        def finish() -> None:
            try:
                if self._client is not None:
                    # Some transports deliver in the background. Only `close` waits for the delivery.
                    client, self._client = self._client, None
                    client.close(limit_s)
            finally:
                done.set()

        self._put(finish)
        if not done.wait(limit_s):
            self._warner.warn(f"events were not delivered within {limit_s:.0f} seconds")

    def _put(self, job: Callable[[], None]) -> None:
        self._queue.put(job)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="openlineage", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            job = self._queue.get()
            try:
                job()
            except ImportError as error:
                self._warner.warn(f"it is configured but not installed ({error}): pip install 'rewindow[openlineage]'")
            except Exception as error:  # noqa: BLE001 - telemetry never fails a command
                self._warner.warn(f"an event was not delivered: {error}")

    def _open(self) -> Any:
        if self._client is None:
            from openlineage.client import OpenLineageClient  # noqa: PLC0415 - imported by the thread

            self._warner.take_over("openlineage")
            _show_console_events()
            self._client = OpenLineageClient()
        return self._client


def _show_console_events() -> None:
    """Make the transport `console` write to standard error. It only logs its events, and nothing else prints this log."""
    console = logging.getLogger("openlineage.client.transport.console")
    if not console.handlers:
        console.addHandler(logging.StreamHandler(sys.stderr))
        console.setLevel(logging.INFO)
        console.propagate = False


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
