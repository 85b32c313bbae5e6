"""Where scenarios come from: JSON lines, each with what was played and what Kafka Streams gave."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CARRIED = HERE / "vectors"
"""The recorded facts of the proposals' own examples, so that a lone clone has them."""


@dataclass(frozen=True)
class Case:
    """A scenario and its recorded result."""

    file: str
    scenario: dict[str, Any]
    expected: dict[str, Any]

    @property
    def name(self) -> str:
        return self.scenario["name"]

    @property
    def mode(self) -> str:
        return self.scenario.get("mode", "driver")


def read(path: Path) -> list[Case]:
    """Return the cases of a file."""
    with path.open(encoding="utf-8") as lines:
        parsed = [json.loads(line) for line in lines if line.strip()]
    return [Case(path.stem, one["scenario"], one["expected"]) for one in parsed]


def vector_files() -> list[Path]:
    """Return all files there are: those given by VECTORS, or beside the repository, else those that it carries."""
    for folder in (
        Path(os.environ["VECTORS"]) if "VECTORS" in os.environ else None,
        ROOT.parent / "shared" / "vectors",
    ):
        if folder is not None and (files := sorted(folder.glob("*.jsonl"))):
            return files
    return sorted(CARRIED.glob("*.jsonl"))
