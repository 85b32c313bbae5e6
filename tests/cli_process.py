"""The command line in a process of its own: where a test has a Spark session already, or wants to kill the command."""

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
    code = "from rewindow.app.cli.app import main; main()"
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
    """Wait for a command, see that it ended with a code, and return what it said."""
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == code, out + err
    return json.loads(out)
