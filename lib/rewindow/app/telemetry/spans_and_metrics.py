"""Traces and metrics of OpenTelemetry: a span for each operation and each of its steps, and the counts of runs and landings."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

from rewindow.app.failures import Failure
from rewindow.app.telemetry import announce
from rewindow.app.telemetry.announce import Warner
from rewindow.app.telemetry.command_facts import LAND, Facts, Operation
from rewindow.contracts.staged_files import TaskReport

_STEP = re.compile(r"[a-z]+( sub-topology)?")
_LAST = "done"


class Metric(NamedTuple):
    """A metric: ``rewindow.<name>``, its instrument, unit and meaning."""

    instrument: str
    unit: str
    meaning: str


METRICS = {
    "landed": Metric("counter", "{record}", "Records that landings added to logs, by feed and topic."),
    "records": Metric("counter", "{record}", "Records that runs read, by job, branch and topic."),
    "rows": Metric("counter", "{row}", "Rows that runs added to output tables, by job, branch and output."),
    "dropped": Metric(
        "counter", "{record}", "Records that are late, skipped, expired or quarantined, by kind and reason."
    ),
    "rows_behind": Metric(
        "counter", "{row}", "Landed rows that became visible after their interval of arrival was landed, by feed."
    ),
    "expectations": Metric(
        "counter", "{expectation}", "Expectations that runs met or did not meet, by output and result."
    ),
    "behind": Metric("gauge", "{landing}", "Landings that the last run of a job's branch had not taken."),
    "duration": Metric("histogram", "s", "How long an operation took, by command and outcome."),
}
"""Maps the name of a `facts.Measure` to its metric."""


@dataclass(slots=True)
class _Open:
    """The span of an operation, its context, and the span of its current step."""

    span: Any
    context: Any
    step: Any = None


class SpanObserver:
    """An observer that creates spans and counts metrics.

    If no providers are given, it uses those that the environment configures.
    """

    def __init__(self, tracers: Any = None, meters: Any = None) -> None:
        self.warner = Warner("OpenTelemetry")
        self._tracers, self._meters = tracers, meters
        self._open: dict[str, _Open] = {}
        self._instruments: dict[str, Any] = {}
        self._is_off = False

    def began(self, operation: Operation) -> None:
        """Start the operation's span. Its parent is the span of the parent operation, or the span in the variable TRACEPARENT."""
        if not self._has_providers():
            return
        from opentelemetry import propagate, trace  # noqa: PLC0415 - only if it is configured

        parent = self._open.get(operation.parent.id) if operation.parent else None
        carrier = {
            name: os.environ[name.upper()] for name in ("traceparent", "tracestate") if name.upper() in os.environ
        }
        context = parent.context if parent else propagate.extract(carrier)
        span = self._tracer.start_span(
            f"rewindow {operation.kind}",
            context,
            attributes=_attributes(operation),
            start_time=operation.began_ms * 1_000_000,
        )
        self._open[operation.id] = _Open(span, trace.set_span_in_context(span, context))

    def planned(self, operation: Operation, facts: Facts) -> None:
        """Do nothing: spans contain counts, no tables."""

    def step(self, operation: Operation, step: str) -> None:
        """End the span of the previous step, and start the span of this step."""
        active = self._open.get(operation.id)
        if active is None:
            return
        self._end_step(active)
        name, details = str(step), getattr(step, "known", {})
        matched = _STEP.match(name)
        if name == _LAST or matched is None:
            return
        attributes = {f"rewindow.{key}": value for key, value in details.items() if isinstance(value, str | int)}
        active.step = self._tracer.start_span(
            matched[0], active.context, attributes={**attributes, "rewindow.step": name}
        )

    def task(self, operation: Operation, report: TaskReport) -> None:
        """Add a finished task as an event to the span of its step."""
        active = self._open.get(operation.id)
        if active is None or active.step is None:
            return
        attributes = {
            "rewindow.sub_topology": report.sub_topology,
            "rewindow.partition": report.partition,
            "rewindow.records": sum(report.consumed.values()),
            "rewindow.rows": report.rows,
        }
        active.step.add_event("task", attributes)

    def ended(self, operation: Operation, facts: Facts) -> None:
        """End the operation's span with its counts, and add the counts to the metrics."""
        active = self._open.pop(operation.id, None)
        if active is None:
            return
        self._end_step(active)
        active.span.set_attributes(_results(facts))
        active.span.end()
        own = {name: value for name, value in _attributes(operation).items() if name in _DIMENSIONS}
        for measure in facts.measures:
            self._count(measure.name, measure.value, {**own, **measure.attributes})
        self._count("duration", operation.seconds, {**own, "command": operation.kind, "outcome": "done"})

    def failed(self, operation: Operation, failure: Failure) -> None:
        """End the operation's span as an error, with the message that the user sees."""
        active = self._open.pop(operation.id, None)
        if active is None:
            return
        from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 - only if it is configured

        self._end_step(active)
        active.span.set_attributes(
            {"error.type": failure.kind, "rewindow.exit_code": failure.exit_code, "rewindow.error_code": failure.code}
        )
        active.span.set_status(Status(StatusCode.ERROR, failure.message))
        active.span.end()
        own = {name: value for name, value in _attributes(operation).items() if name in _DIMENSIONS}
        self._count("duration", operation.seconds, {**own, "command": operation.kind, "outcome": "failed"})

    def flush(self) -> None:
        """Export everything, but wait only a few seconds. An exporter may retry for longer than a command should take."""
        if self._tracers is None or self._is_off:
            return
        limit_s = self.warner.patience_s
        providers = (self._tracers, self._meters)
        exports = threading.Thread(target=self._export, args=providers, name="opentelemetry", daemon=True)
        exports.start()
        exports.join(limit_s)
        if exports.is_alive():
            self.warner.warn(f"spans and metrics were not delivered within {limit_s:.0f} seconds")

    def _export(self, *providers: Any) -> None:
        try:
            for provider in providers:
                provider.force_flush(round(announce.PATIENCE_S * 1000))
        except Exception as error:  # noqa: BLE001 - telemetry never fails a command
            self.warner.warn(f"spans and metrics were not delivered: {error}")

    def _has_providers(self) -> bool:
        if self._tracers is None and not self._is_off:
            self._is_off = True  # this stays set if the lines below raise an error
            try:
                from rewindow.app.telemetry.opentelemetry_setup import meter_provider, tracer_provider  # noqa: PLC0415
            except ImportError as error:
                self.warner.warn(f"it is configured but not installed ({error}): pip install 'rewindow[opentelemetry]'")
                return False
            self.warner.take_over("opentelemetry")
            self._tracers, self._meters = tracer_provider(), meter_provider()
            self._is_off = False
        return not self._is_off

    @property
    def _tracer(self) -> Any:
        return self._tracers.get_tracer("rewindow")

    def _count(self, name: str, value: float, attributes: dict[str, Any]) -> None:
        metric = METRICS[name]
        if name not in self._instruments:
            create = getattr(self._meters.get_meter("rewindow"), f"create_{metric.instrument}")
            self._instruments[name] = create(f"rewindow.{name}", unit=metric.unit, description=metric.meaning)
        method = {"counter": "add", "gauge": "set", "histogram": "record"}[metric.instrument]
        shown = {key if key.startswith("rewindow.") else f"rewindow.{key}": one for key, one in attributes.items()}
        getattr(self._instruments[name], method)(value, shown)

    @staticmethod
    def _end_step(active: _Open) -> None:
        if active.step is not None:
            active.step.end()
            active.step = None


_DIMENSIONS = ("rewindow.feed", "rewindow.job", "rewindow.branch", "rewindow.project", "rewindow.target")
"""The attributes of an operation that are also attributes of its metrics."""


def _attributes(operation: Operation) -> dict[str, Any]:
    attributes = {
        "rewindow.command": operation.kind,
        "rewindow.project": operation.project,
        "rewindow.target": operation.target,
        "rewindow.feed" if operation.kind == LAND else "rewindow.job": operation.subject,
    }
    return {**attributes, **({"rewindow.branch": operation.branch} if operation.branch else {})}


def _results(facts: Facts) -> dict[str, Any]:
    """Return the details that a span can hold: scalars, non-empty lists, and the sums of records and rows."""
    attributes: dict[str, Any] = {}
    for name, value in facts.details.items():
        if isinstance(value, str | int | float) or (isinstance(value, list) and value):
            attributes[f"rewindow.{name}"] = value
        elif name in {"records", "rows"} and isinstance(value, dict):
            attributes[f"rewindow.{name}"] = sum(value.values())
    return attributes
