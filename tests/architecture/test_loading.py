"""A command loads what it uses: a budget of modules, because seconds differ between machines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import rewindow
from rewindow.app.new_project import Example, create_project

CODE = """
import json, os, sys
from rewindow.app.cli import entry
entry.leave = lambda code: (print(json.dumps([code, sorted(sys.modules)]), flush=True), os._exit(0))
sys.argv = ["rewindow", *sys.argv[1:]]
entry.main()
"""
HEAVY = {"deltalake", "numpy", "pendulum", "psutil", "pyarrow", "pydantic", "pyspark", "rich", "structlog"}


def loaded(*words: str, folder: Path | None = None) -> set[str]:
    """Return the modules that a command loads in a process of its own."""
    arguments = [sys.executable, "-c", CODE, *words]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=folder)
    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stdout
    return set(modules)


def test_the_version_loads_no_library_but_typer():
    modules = loaded("--version")
    assert not modules & HEAVY
    assert len([name for name in modules if name.startswith("rewindow")]) <= 9


@pytest.mark.slow
def test_small_commands_load_what_they_use(tmp_path):
    """A command that uses more may raise its number."""
    create_project(tmp_path, Example.WINDOWS)
    for command, subject, most, unused in (
        ("land", "orders", 163, {"structlog", "rewindow.dsl", "rewindow.engine.worker.task_execution"}),
        (
            "run",
            "daily_orders",
            233,
            {"pendulum", "rewindow.engine.worker.landing", "structlog"},
        ),
        ("show", "daily_orders", 106, {"psutil", "pyarrow.dataset", "structlog", "rewindow.control.run"}),
    ):
        modules = loaded(command, subject, folder=tmp_path)
        assert not modules & {"pandas", "pyspark", *unused}, command
        assert len([name for name in modules if name.startswith("rewindow")]) <= most, command


def test_a_series_is_an_array_of_its_values_also_if_a_job_loads_pandas_first():
    code = (
        "from rewindow.app.cli.pandas_on_demand import load_pandas_on_demand\n"
        "load_pandas_on_demand()\n"
        "import sys, pyarrow as pa\n"
        "pa.array([1])\n"
        "before = 'pandas' in sys.modules\n"
        "import pandas as pd\n"
        "array, rows = pa.array(pd.Series([1.0, float('nan')])), pa.table({'a': [1]}).to_pandas()\n"
        "print(before, array.null_count, rows.shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "1", "(1,", "1)"]


def test_the_package_loads_a_name_when_it_is_used():
    code = "import rewindow, sys; print(len([name for name in sys.modules if name.startswith('rewindow')]))"
    assert int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) == 1
    assert {name for name in rewindow.__all__ if getattr(rewindow, name).__name__ != name} == set()
    assert set(rewindow.__all__) == set(rewindow._MODULE_OF)
