"""Projects of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.fixture
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let each project import its own `jobs`, and not this repository's."""
    monkeypatch.setattr("sys.path", [path for path in sys.path if Path(path or ".").resolve() != ROOT])
    monkeypatch.chdir(tmp_path)
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "jobs"}
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "jobs"]:
        del sys.modules[name]
    sys.modules.update(hidden)
