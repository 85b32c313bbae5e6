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
"""The recordings in this repository: the proposals' own examples (`seed_`) and what was recorded later."""


class MalformedError(Exception):
    """A line of a file that is no scenario with its result."""


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

    @property
    def error(self) -> tuple[str, int | None] | None:
        """The recorded error: its phase, and its step if it was not building. A partition group is always at a step."""
        error = self.expected.get("error")
        if not error:
            return None
        said = error if isinstance(error, dict) else {}
        if said.get("phase") == "build":
            return "build", None
        steps = self.expected["steps"]
        failing = [number for number, step in enumerate(steps) if step.get("error")]
        return "step", int(said.get("step", failing[0] if failing else max(0, len(steps) - 1)))

    @property
    def steps(self) -> list[Any]:
        """The recorded steps without their numbers and what is traced besides; of a group, those before the error."""
        steps = self.expected["steps"]
        if self.mode != "partition_group":
            return [comparable(self.scenario, step.get("out", [])) for step in steps]
        until = len(steps) if self.error is None else self.error[1]
        return [{name: value for name, value in step.items() if name != "i"} for step in steps[:until]]


def comparable(scenario: dict[str, Any], sent: list[Any]) -> list[Any]:
    """Return what a step sent, as far as it can be compared.

    It is ordered by sink if tasks are separate, because nothing orders what they send; and sorted if there are partitions.
    Windows in local time have no ends here, because Kafka shows those of the longest window (D25).
    """
    if any(node.get("type") == "calendar" for node in scenario.get("nodes", ())):
        sent = [{**one, "key": {name: one["key"][name] for name in ("key", "start")}} for one in sent]
    config = scenario.get("config", {})
    if config.get("partitions", 1) > 1:
        return sorted(sent, key=lambda one: json.dumps(one, sort_keys=True))
    return sorted(sent, key=lambda one: one["sink"]) if config.get("tasks") == "separate" else sent


def read(path: Path) -> list[Case]:
    """Return the cases of a file."""
    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            try:
                one = json.loads(line)
                cases.append(Case(path.stem, one["scenario"], one["expected"]))
            except (ValueError, KeyError, TypeError) as error:
                message = f"{path}:{number}: not a scenario with its result: {type(error).__name__}: {error}"
                raise MalformedError(message) from error
    return cases


def vector_files() -> list[Path]:
    """Return the files of scenarios: those in VECTORS; else those in this repository, and others beside it.

    Raises `FileNotFoundError` if VECTORS names a folder without scenarios.
    """
    if "VECTORS" in os.environ:
        files = sorted(Path(os.environ["VECTORS"]).glob("*.jsonl"))
        if not files:
            message = f"no *.jsonl in VECTORS={os.environ['VECTORS']}: unset it, or name the folder of the scenarios"
            raise FileNotFoundError(message)
        return files
    beside = sorted((ROOT.parent / "shared" / "vectors").glob("*.jsonl"))
    carried = sorted(CARRIED.glob("*.jsonl"))
    return carried + [file for file in beside if not (CARRIED / file.name).exists()]
