"""A command loads what it uses: a budget of modules, because seconds differ between machines."""

from __future__ import annotations

import json
import subprocess
import sys

import rewindow

CODE = """
import json, os, sys
from rewindow.app.cli import entry
entry.leave = lambda code: (print(json.dumps([code, sorted(sys.modules)]), flush=True), os._exit(0))
sys.argv = ["rewindow", *sys.argv[1:]]
entry.main()
"""
HEAVY = {"deltalake", "numpy", "pendulum", "psutil", "pyarrow", "pydantic", "pyspark", "rich", "structlog"}


def loaded(*words: str) -> set[str]:
    """Return the modules that a command loads in a process of its own."""
    done = subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stdout
    return set(modules)


def test_the_version_loads_no_library_but_typer():
    modules = loaded("--version")
    assert not modules & HEAVY
    assert len([name for name in modules if name.startswith("rewindow")]) <= 11


def test_the_package_loads_a_name_when_it_is_used():
    code = "import rewindow, sys; print(len([name for name in sys.modules if name.startswith('rewindow')]))"
    assert int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) == 1
    assert {name for name in rewindow.__all__ if getattr(rewindow, name).__name__ != name} == set()
    assert set(rewindow.__all__) == set(rewindow._MODULE_OF)
