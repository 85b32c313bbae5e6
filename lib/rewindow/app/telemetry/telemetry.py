"""The observers of a command's operations. They never make a command fail, and delay it by a few seconds at most."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rewindow.app.failures import Failure, failure_of
from rewindow.app.telemetry.command_facts import NOTHING, Facts, Operation, new_id
from rewindow.config.load import why_not_trusted

if TYPE_CHECKING:
    from rewindow.app.telemetry.announce import Warner
    from rewindow.contracts.staged_files import TaskReport

_FILE = "openlineage.yml"
_ENDPOINTS = tuple(f"OTEL_EXPORTER_OTLP_{part}ENDPOINT" for part in ("", "TRACES_", "METRICS_"))
_EXPORTERS = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER")


def has_openlineage(environ: Mapping[str, str]) -> bool:
    """Return whether OpenLineage's client would send events: it is not disabled, and has a URL, a transport or a file."""
    if environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    if environ.get("OPENLINEAGE_URL") or any(name.startswith("OPENLINEAGE__TRANSPORT") for name in environ):
        return True
    home = environ.get("HOME")
    files = [Path(_FILE), *([Path(home, ".openlineage", _FILE)] if home else [])]
    if given := environ.get("OPENLINEAGE_CONFIG"):
        files.append(Path(given))
    return any(path.is_file() for path in files)


def has_opentelemetry(environ: Mapping[str, str]) -> bool:
    """Return whether OpenTelemetry is not disabled, and has an endpoint or an exporter other than ``none``."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    wanted = [environ.get(name, "").strip().lower() for name in _EXPORTERS]
    return any(exporter not in {"", "none"} for exporter in wanted) or (
        any(environ.get(name) for name in _ENDPOINTS) and not all(exporter == "none" for exporter in wanted)
    )


OnStep = Callable[[str], None] | None
"""A function that is called with each step of a command before the step is executed."""


class Observer(Protocol):
    """A system that receives events about operations. An error in a method becomes a warning, at most one per command."""

    warner: Warner

    def began(self, operation: Operation) -> None:
        """An operation begins."""

    def planned(self, operation: Operation, facts: Facts) -> None:
        """The tables that the operation will read and write are known."""

    def step(self, operation: Operation, step: str) -> None:
        """A step of the operation begins. ``step``: a `control.ledger_steps.Step`, or its name."""

    def task(self, operation: Operation, report: TaskReport) -> None:
        """A task of the current step has finished."""

    def ended(self, operation: Operation, facts: Facts) -> None:
        """The operation has ended without an error."""

    def failed(self, operation: Operation, failure: Failure) -> None:
        """The operation has failed, or was interrupted."""

    def flush(self) -> None:
        """Send everything that is queued, within a few seconds."""


class Observed:
    """One operation, as the code that executes it reports it.

    Facts are given as functions, which are called only if there are observers.
    """

    def __init__(self, telemetry: Telemetry, operation: Operation) -> None:
        self._telemetry, self.operation = telemetry, operation
        self._done: Callable[[], Facts] = lambda: NOTHING

    def planned(self, facts: Callable[[], Facts]) -> None:
        """Notify the observers of what the operation will read and write."""
        self._telemetry.tell(lambda observer, known: observer.planned(self.operation, known), facts)

    def watching(self, on_step: OnStep) -> OnStep:
        """Return a function that notifies the observers of each step and then calls ``on_step``."""
        if not self._telemetry.observers:
            return on_step

        def told(step: str) -> None:
            self._telemetry.tell(lambda observer, _: observer.step(self.operation, step))
            if on_step is not None:
                on_step(step)

        return told

    def done(self, facts: Callable[[], Facts]) -> None:
        """Set the function that returns what the operation did. It is called when the operation ends."""
        self._done = facts

    def end(self) -> None:
        """Notify the observers that the operation has ended."""
        self._telemetry.tell(lambda observer, known: observer.ended(self.operation, known), self._done)


class Telemetry:
    """The observers of the operations on one project and target."""

    def __init__(self, project: str, target: str, observers: Sequence[Observer] = ()) -> None:
        self._project, self._target, self.observers = project, target, tuple(observers)
        self._open: list[Operation] = []

    @contextmanager
    def operation(self, kind: str, subject: str, branch: str | None = None) -> Iterator[Observed]:
        """Notify the observers of the beginning of this block, of its steps, and of its end or failure."""
        now_ms = time.time_ns() // 1_000_000
        parent = self._open[-1] if self._open else None
        operation = Operation(kind, self._project, self._target, subject, now_ms, branch, parent, id=new_id(now_ms))
        observed = Observed(self, operation)
        self._open.append(operation)
        self.tell(lambda observer, _: observer.began(operation))
        try:
            yield observed
        except BaseException as error:
            failure = failure_of(error)
            self.tell(lambda observer, _: observer.failed(operation, failure))
            raise
        else:
            observed.end()
        finally:
            self._open.pop()
            if not self._open:
                self.tell(lambda observer, _: observer.flush())

    def task(self, report: TaskReport) -> None:
        """Notify the observers that a task of the current operation has finished."""
        if self._open:
            self.tell(lambda observer, _: observer.task(self._open[-1], report))

    def tell(self, call: Callable[[Observer, Facts], None], facts: Callable[[], Facts] = lambda: NOTHING) -> None:
        """Call a function with each observer and the facts. An error becomes a warning, at most one for each observer."""
        if not self.observers:
            return
        try:
            known = facts()
        except Exception as error:  # noqa: BLE001 - telemetry never fails a command
            for observer in self.observers:
                observer.warner.warn(f"the tables and counts of a command are unknown: {error}")
            known = NOTHING
        for observer in self.observers:
            try:
                call(observer, known)
            except Exception as error:  # noqa: BLE001 - telemetry never fails a command
                observer.warner.warn(str(error))


def telemetry_of(root: Path, target: str) -> Telemetry:
    """Return the telemetry that the environment configures, in the variables of OpenLineage's and OpenTelemetry's clients.

    ``root``: the project's folder.
    """
    observers: list[Observer] = []
    if has_openlineage(os.environ) and _trusts_file_here(root, os.environ):
        from rewindow.app.telemetry.openlineage_sender import EventObserver  # noqa: PLC0415 - only if it is configured

        observers.append(EventObserver())
    if has_opentelemetry(os.environ):
        from rewindow.app.telemetry.spans_and_metrics import SpanObserver  # noqa: PLC0415 - only if it is configured

        observers.append(SpanObserver())
    return Telemetry(root.name, target, observers)


def _trusts_file_here(root: Path, environ: Mapping[str, str]) -> bool:
    """Return False and print a warning if another user's file in the working folder would configure OpenLineage's client.

    Such a file could make the client send the events of a command anywhere, or append them to any file. The project's own
    folder is trusted.
    """
    here = Path.cwd()
    file = here / _FILE
    if environ.get("OPENLINEAGE_CONFIG") or here == root or not file.is_file():
        return True
    why = why_not_trusted(file) or why_not_trusted(file.resolve())
    if why:
        from rewindow.app.telemetry.announce import Warner  # noqa: PLC0415 - most commands have nothing to warn of

        Warner("OpenLineage").warn(f"{file} {why}. If you trust it, name it in OPENLINEAGE_CONFIG")
    return not why
