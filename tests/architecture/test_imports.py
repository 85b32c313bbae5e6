from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_module_of_jobs_imports() -> None:
    """Nothing else imports some of them: `make demo` failed for six days. DAG files are parsed in tests/airflow."""
    names = [f"jobs.{path.stem}" for path in sorted((ROOT / "jobs").glob("*.py")) if path.stem != "__init__"]
    assert "jobs.demo" in names
    code = f"import importlib\nfor name in {names!r}: importlib.import_module(name)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
