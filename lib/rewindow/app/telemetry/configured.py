"""Whether the environment configures a client, found out without importing the client."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_FILE = "openlineage.yml"
_ENDPOINTS = tuple(f"OTEL_EXPORTER_OTLP_{part}ENDPOINT" for part in ("", "TRACES_", "METRICS_"))
_EXPORTERS = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER")


def has_openlineage(environ: Mapping[str, str]) -> bool:
    """Return whether the client of OpenLineage would send events: it has a URL, a transport or a file, and is not disabled."""
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
    """Return whether OpenTelemetry has an endpoint, or an exporter other than ``none``, and is not disabled."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    wanted = [environ.get(name, "").strip().lower() for name in _EXPORTERS]
    return any(one not in {"", "none"} for one in wanted) or (
        any(environ.get(name) for name in _ENDPOINTS) and not all(one == "none" for one in wanted)
    )
