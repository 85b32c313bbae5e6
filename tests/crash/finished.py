"""The figures of the suites that ran to their end. The repository keeps them, because a suite takes up to two hours.

Each entry has the digest of the code that it is about. A suite whose code has changed since is not finished.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.results import machine
from tests.bench.sections import commit
from tests.crash.results import code_digest
from tests.crash.settings import Figures

KEPT = Path(__file__).parent / "finished.json"


@dataclass(frozen=True)
class Finished:
    """A suite's figures, the digest of the code that it tested, and the commit, the date and the machine of its end."""

    figures: Figures
    digest: str
    commit: str
    date: str
    machine: str

    @property
    def is_current(self) -> bool:
        """Whether the tested code has not changed since."""
        return self.digest == code_digest(self.figures.suite)


def load(path: Path = KEPT) -> dict[str, Finished]:
    """Return what is kept, by suite."""
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return {name: Finished(**{**one, "figures": Figures(**one["figures"])}) for name, one in kept.items()}


def keep(figures: Figures, path: Path = KEPT) -> None:
    """Keep the figures of a suite that has just ended."""
    about = machine()
    ended = Finished(figures, code_digest(figures.suite), commit(), about["date"], about["machine"])
    kept = load(path) | {figures.suite: ended}
    path.write_text(json.dumps({name: asdict(one) for name, one in sorted(kept.items())}, indent=1) + "\n")
