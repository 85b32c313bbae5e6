"""Stored outcomes, case by case, so that a stopped command continues where it was.

The file's name contains a digest of the tested code, so changed code starts again.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_LIB = ROOT / "lib" / "rewindow"
_PROTOCOL = (
    "control/ledger_steps.py",
    "control/*.py",
    "control/plan/*.py",
    "control/ingest/*.py",
    "tables/shared/*.py",
    "tables/delta/*.py",
    "engine/worker/parquet_writer.py",
    "storage/progress.py",
)

_GOVERNED = (
    *(pattern for pattern in _PROTOCOL if not pattern.startswith("tables/delta/")),
    "tables/governed/*.py",
    "engine/worker/landing/*.py",
)

_COMMON = ("matrix.py", "operations.py", "scene.py", "sites.py", "judge.py")
_ALONE = ("simulation", "pairs", "model", "put", "random-kills", "stops", "mutated-bytes", "histories", "governed")
"""Suites that do not use `_COMMON`: they work in memory, on files only, or with whole commands."""
_IN_MEMORY = ("history.py", "seeded_faults.py", "oracle.py", "memory_job.py", "memory_tables.py", "memory.py")
_KINDS = ("commits", "feeds", "fold", "branches", "upkeep")
_MUTANTS = ("mutants.py", *(f"mutants_of_{kind}.py" for kind in _KINDS), "rewriting.py")
_OWN = {
    "holds": ("holds.py", "meetings.py"),
    "duels": ("duels.py", "meetings.py"),
    "answers": ("answers.py", "meetings.py"),
    "simulation": ("simulation.py", *_IN_MEMORY),
    "pairs": ("pairs.py", *_IN_MEMORY),
    "spark": ("spark.py",),
    "workers": ("workers.py", "spark.py", "meetings.py"),
    "governed": (
        "governed.py",
        "governed_ground.py",
        "governed_operations.py",
        "governed_sites.py",
        "../protocol/backends.py",
        "scene.py",
    ),
    "model": ("model.py", "interleavings.py", "decisions.py", "rewriting.py"),
    "put": ("put.py",),
    "recovery": ("recovery.py",),
    "random-kills": ("random_kills.py", "commands.py"),
    "stops": ("stops.py", "commands.py", "sites.py"),
    "mutated-bytes": ("mutated_bytes.py", "commands.py"),
    "histories": ("command_histories.py", "naive_project.py", "random_kills.py", "commands.py"),
    "mutants": (
        "simulation.py",
        *_IN_MEMORY,
        *_MUTANTS,
        "probes.py",
        "forged.py",
        "holds.py",
        "meetings.py",
        "answers.py",
    ),
}
_OF_ALL = {
    "chunking": "properties/*.py",
    "layouts": "properties/*.py",
    "order": "properties/*.py",
    "corpus": "bad_input/*.py",
    "corruption": "bad_input/*.py",
}
"""Suites about the whole library, and where their tests are."""


def code_digest(suite: str) -> str:
    """Return a digest of the sources that a suite tests (for most, those of the protocol) and of the suite."""
    digest = hashlib.blake2b(digest_size=6)
    patterns, own = (
        (("**/*.py",), ("examined.py",))
        if suite in _OF_ALL
        else (
            _GOVERNED if suite == "governed" else _PROTOCOL,
            (*(() if suite in _ALONE else _COMMON), *_OWN.get(suite, ())),
        )
    )
    tested = sorted(path for pattern in patterns for path in _matching(_LIB, pattern))
    tests = sorted(_matching(ROOT / "tests", _OF_ALL[suite])) if suite in _OF_ALL else []
    for path in (*tested, *tests, *(Path(__file__).parent / name for name in own)):
        digest.update(executed(path))
    return digest.hexdigest()


def executed(path: Path) -> bytes:
    """Return what Python executes of a file. Other comments, docstrings or line breaks leave the results of hours valid."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [one for one in node.body if not _is_text(one)]
    return ast.dump(tree).encode()


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _matching(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a pattern. Raises `LookupError` if there are none: results of other code would be believed."""
    if not (found := list(folder.glob(pattern))):
        message = f"{pattern} names no file below {folder}: name the sources that the suite speaks of"
        raise LookupError(message)
    return found


@dataclass
class Results:
    """The outcomes of one suite."""

    path: Path
    sites: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    said: dict[tuple[str, int, str], str] = field(default_factory=dict)

    @classmethod
    def of(cls, suite: str, folder: Path | None = None) -> Results:
        """Open the results of a suite for the current code."""
        path = (folder or ROOT / ".cache" / "crash") / f"{suite}-{code_digest(suite)}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        known = cls(path)
        for line in path.read_text().splitlines() if path.exists() else ():
            known._take(json.loads(line))
        return known

    def note_sites(self, operation: str, seed: int, sites: list[str]) -> None:
        """Store the sites that a clean call passed."""
        self._write({"operation": operation, "seed": seed, "sites": sites})

    def keep(self, outcomes: Iterable[Any], say: Callable[[str], None]) -> None:
        """Store outcomes as they come, and say which ones are not good."""
        for outcome in outcomes:
            if not outcome.said.startswith("ok"):
                say(f"{outcome.operation} {outcome.seed} {outcome.site}: {outcome.said}")
            self.add(outcome)

    def add(self, outcome: Any) -> None:
        """Store an outcome."""
        self._write(asdict(outcome))

    def knows(self, operation: str, seed: int, site: str) -> bool:
        """Return whether a case has an outcome."""
        return (operation, seed, site) in self.said

    def extent(self) -> dict[str, int]:
        """Return the numbers of distinct ``sites``, ``pairs`` (of operation and site) and ``seeds`` of the cases."""
        return {
            "sites": len({site for _, _, site in self.said}),
            "pairs": len({(name, site) for name, _, site in self.said}),
            "seeds": len({seed for _, seed, _ in self.said}),
        }

    def _write(self, line: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        key = line["operation"], line["seed"]
        if "sites" in line:
            self.sites[key] = line["sites"]
        else:
            self.said[*key, line["site"]] = line["said"]
