"""Run the command line in a separate process, for tests that already have a Spark session or that kill the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

LIB = Path(__file__).resolve().parent.parent / "lib"


def command(root: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start ``rewindow ARGUMENTS --json`` in a project."""
    code = "from rewindow.app.cli.entry import main; main()"
    paths = os.pathsep.join([str(LIB), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments, "--json"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def done(process: subprocess.Popen[str], code: int = 0, *, seconds: int = 300) -> Any:
    """Wait for a command, check its exit code, and return its JSON output."""
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == code, out + err
    return json.loads(out)
