"""The option ``--version``."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

from rewindow.app.own_code import RUNNING, running_version

_WITH = ("pyspark", "delta-spark", "deltalake", "pyarrow")


def version_lines() -> list[str]:
    """Return the versions of rewindow and what it works with, and where it is installed."""
    versions = [f"{name} {found}" for name in _WITH if (found := _version(name))]
    return [
        f"rewindow {running_version()} ({Path(RUNNING).parent})",
        ", ".join([f"Python {platform.python_version()}", *versions]),
    ]


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
