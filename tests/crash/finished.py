"""The figures of the suites that ran to their end. The repository keeps them, because a suite takes up to two hours.

Each entry has the digest of the code that it is about. A suite whose code has changed since is not finished.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.crash.results import ROOT, code_digest
from tests.crash.settings import Figures

KEPT = Path(__file__).parent / "finished.json"


@dataclass(frozen=True)
class Finished:
    """A suite's figures, the digest of the code that it tested, and the commit at which it ran."""

    figures: Figures
    digest: str
    commit: str

    @property
    def is_current(self) -> bool:
        """Whether the tested code has not changed since."""
        return self.digest == code_digest(self.figures.suite)


def load(path: Path = KEPT) -> dict[str, Finished]:
    """Return what is kept, by suite."""
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return {name: Finished(Figures(**one["figures"]), one["digest"], one["commit"]) for name, one in kept.items()}


def keep(figures: Figures, path: Path = KEPT) -> None:
    """Keep the figures of a suite that has just ended."""
    kept = load(path) | {figures.suite: Finished(figures, code_digest(figures.suite), _commit())}
    path.write_text(json.dumps({name: asdict(one) for name, one in sorted(kept.items())}, indent=1) + "\n")


def _commit() -> str:
    command = [shutil.which("git") or "git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
