"""Read scenarios from JSON lines, each with its input and the result of Kafka Streams."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CARRIED = HERE / "vectors"
"""Recordings of the proposals' own examples. They are in this repository, so every clone has them."""


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
    """Return the files of scenarios: those in VECTORS; else those beside the repository; else those in it.

    Raises `FileNotFoundError` if VECTORS names a folder without scenarios.
    """
    if "VECTORS" in os.environ:
        files = sorted(Path(os.environ["VECTORS"]).glob("*.jsonl"))
        if not files:
            message = f"no *.jsonl in VECTORS={os.environ['VECTORS']}: unset it, or name the folder of the scenarios"
            raise FileNotFoundError(message)
        return files
    beside = sorted((ROOT.parent / "shared" / "vectors").glob("*.jsonl"))
    return beside or sorted(CARRIED.glob("*.jsonl"))
