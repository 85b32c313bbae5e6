"""The providers of OpenTelemetry that the environment configures, with the variables and defaults of OpenTelemetry's SDK."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from rewindow.app.version import running_version
from rewindow.errors import ConfigError

_GROUPS = {"TRACES": "opentelemetry_traces_exporter", "METRICS": "opentelemetry_metrics_exporter"}
_SERVICE = "rewindow"


def tracer_provider() -> Any:
    """Return the process's provider of traces if it has one, as under `opentelemetry-instrument`; otherwise a new one."""
    current = trace.get_tracer_provider()
    if isinstance(current, TracerProvider):
        return current
    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    for exporter in _exporters("TRACES"):
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def meter_provider() -> Any:
    """Return the process's provider of metrics if there is one; otherwise a new provider."""
    current = metrics.get_meter_provider()
    if isinstance(current, MeterProvider):
        return current
    readers = [
        exporter if isinstance(exporter, MetricReader) else PeriodicExportingMetricReader(exporter)
        for exporter in _exporters("METRICS")
    ]
    return MeterProvider(metric_readers=readers, resource=_resource(), shutdown_on_exit=False)


def exporter_names(signal: str, environ: Mapping[str, str]) -> list[str]:
    """Return the names of a signal's exporters. If there is an endpoint but no name, the exporter is ``otlp``."""
    given = environ.get(f"OTEL_{signal}_EXPORTER", "").strip()
    if not given:
        endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
        given = "otlp" if any(environ.get(name) for name in endpoints) else "none"
    names = [name.strip().lower() for name in given.split(",")]
    return [_with_protocol(name, signal, environ) for name in names if name not in {"", "none"}]


def _with_protocol(name: str, signal: str, environ: Mapping[str, str]) -> str:
    if name != "otlp":
        return name
    protocols = (environ.get(f"OTEL_EXPORTER_OTLP_{part}PROTOCOL") for part in (f"{signal}_", ""))
    protocol = next((text.strip() for text in protocols if text), "grpc")
    return "otlp_proto_http" if protocol == "http/protobuf" else "otlp_proto_grpc"


def _exporters(signal: str) -> Iterator[Any]:
    for name in exporter_names(signal, os.environ):
        entry_point = next(iter(entry_points(group=_GROUPS[signal], name=name)), None)
        if entry_point is None:
            raise ConfigError(
                "exporter-unknown",
                "OTEL_{signal}_EXPORTER: there is no exporter {exporter!r}. pip install "
                "'rewindow[opentelemetry]' installs otlp and console",
                signal=signal,
                exporter=name,
            )
        made = entry_point.load()
        # Standard output is for the command's result, so the exporter `console` writes to standard error.
        yield made(out=sys.stderr) if name == "console" else made()


def _resource() -> Any:
    own = {SERVICE_VERSION: running_version()}
    is_named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return Resource.create(own if is_named else {**own, SERVICE_NAME: _SERVICE})
