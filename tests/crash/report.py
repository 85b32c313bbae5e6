"""The scoreboard: the guarantees of L5 as far as they are measured, with what is less than the goal.

Written from what is kept of each suite for the code as it is, so also while a suite is still under way.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.crash.results import ROOT, Results, location_of
from tests.crash.settings import BAD, Figures

PAGE = Path(__file__).parent / "RESULTS.md"
STORED = ("matrix", "spark", "workers", "holds", "duels", "answers")
"""Suites that keep each case, and so can be half done."""


def keep(figures: Figures, folder: Path | None) -> None:
    """Keep what a suite found."""
    path = location_of(figures.suite, folder).with_suffix(".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(figures)))


def known(suite: str, folder: Path | None) -> tuple[Figures, bool]:
    """Return what is known of a suite, and whether it came to its end."""
    path = location_of(suite, folder).with_suffix(".json")
    is_done = path.exists()
    if is_done and suite not in STORED:
        return Figures(**json.loads(path.read_text())), True
    figures = Figures(suite)
    if suite == "simulation":
        for text in Results.of(suite, folder).said.values():
            chunk = json.loads(text)
            figures.cases += chunk["seeds"] - len(chunk["bad"])
            for seed, word in chunk["bad"]:
                figures.count(word, f"seed {seed}")
    if suite in STORED:
        results = Results.of(suite, folder)
        kills = contested = 0
        for (name, seed, site), said in results.said.items():
            word, _, rest = said.partition(" / ")
            figures.count(word, f"{name} {seed} {site}")
            kills, contested = kills + int((rest.split() or ["0"])[0]), contested + int((rest.split() or ["0"] * 3)[2])
        figures.more = {
            **results.extent(),
            **({"kills": kills, "contested": contested} if suite == "duels" else {}),
        }
    return figures, is_done


def write(folder: Path | None, suites: list[str], page: Path = PAGE) -> None:
    """Write the page."""
    found = {suite: known(suite, folder) for suite in suites}
    lines = [*_head(), "", "| Figure | Goal | Measured | Not ok |", "| --- | --- | --- | --- |"]
    lines += [f"| {what} | {goal} | {_state(found, suite, text)} |" for what, goal, suite, text in _rows(found)]
    lines += [
        "",
        "## Power",
        "",
        *_power(found),
        "",
        "## What is less than the goal, and why",
        "",
        *_lacking(found),
        "",
    ]
    page.write_text("\n".join(lines))


def _head() -> list[str]:
    versions = ", ".join(
        f"{name} {metadata.version(name)}" for name in ("deltalake", "pyarrow", "pyspark", "delta-spark")
    )
    git = subprocess.run(
        [shutil.which("git") or "git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return [
        "# Nothing lost, nothing doubled: what was measured",
        "",
        "`make crash` writes this page; stopped, it goes on where it was. A case that was not reached counts as a failure.",
        "",
        (
            f"Machine: {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}; load {load}; {versions}. "
            f"Code: {git.stdout.strip() or 'unknown'}. Seeds: 0, 1, 2 ... of each suite."
        ),
    ]


def _state(found: Mapping[str, tuple[Figures, bool]], suite: str, text: str) -> str:
    figures, is_done = found[suite]
    bad = ", ".join(f"{getattr(figures, word)} {word.replace('_', ' ')}" for word in BAD if getattr(figures, word))
    if not figures.cases:
        return "not run | -"
    return f"{text}{'' if is_done else ' (under way)'} | {bad or '0'}"


def _rows(found: Mapping[str, tuple[Figures, bool]]) -> list[tuple[str, str, str, str]]:
    more: dict[str, dict[str, Any]] = {suite: figures.more for suite, (figures, _) in found.items()}
    cases = {suite: f"{figures.cases:,}" for suite, (figures, _) in found.items()}
    pairs, model, put = more["pairs"].get("points", {}), more["model"], more["put"].get("delta-rs", {})
    return [
        (
            "Protocol states explored / configurations to their end",
            "10 M / all",
            "model",
            f"{model.get('states', 0):,} / {model.get('exhaustive', 0)} of {model.get('of', 0)}",
        ),
        (
            "Mutants of the protocol killed",
            "25 of 25",
            "mutants",
            f"{_of(more['mutants'].get('mutants'))}; {cases['mutants']} probes of them green on the code as it is",
        ),
        (
            "Kills at named sites, processes on Delta tables: sites x seeds",
            "60 x 20",
            "matrix",
            _kills(more["matrix"], cases["matrix"]),
        ),
        (
            "The same with the work on Spark",
            "60 x 3",
            "spark",
            _kills(more["spark"], cases["spark"]),
        ),
        ("Python workers of Spark killed at a record", "500", "workers", cases["workers"]),
        ("Histories simulated on tables in memory, with faults", "1 M", "simulation", cases["simulation"]),
        (
            "Pairs of points, both held, in memory",
            "3,600",
            "pairs",
            f"{cases['pairs']} ({', '.join(f'{name} {count}' for name, count in pairs.items())} points)",
        ),
        ("One held at each point, the other to the end, in processes", "every point", "holds", cases["holds"]),
        (
            "Duels of two and eight processes",
            "2,000 (this issue: 1,000)",
            "duels",
            (
                f"{cases['duels']} rounds, {more['duels'].get('kills', 0):,} kills, {more['duels'].get('contested', 0):,} with "
                "one commit that two reached"
            ),
        ),
        (
            "Answers lost, refused, made up, repeated, delayed, at each commit",
            "every commit",
            "answers",
            cases["answers"],
        ),
        (
            "Two processes put one version on a local disk: both were told that they have it",
            "0",
            "put",
            f"{put.get('both', 0)} of {put.get('rounds', 0):,}, {put.get('contested', 0):,} of them at the same time",
        ),
        (
            "Random topologies, their records cut into runs at random: examples",
            "1,000 topologies x 20 cuts",
            "chunking",
            f"{cases['chunking']} (each a topology and a cut)",
        ),
        (
            "Batches, order of tasks, hash seeds, memory or disk: examples",
            "1,000 topologies x 12 settings",
            "layouts",
            f"{cases['layouts']} (each a topology and a setting)",
        ),
        (
            "Records of several logs taken in one order, as an oracle takes them: examples",
            "1,000",
            "order",
            cases["order"],
        ),
        (
            "Bad input: one clear error and its code or the quarantine, tables as before",
            "500 (this issue: 150)",
            "corpus",
            cases["corpus"],
        ),
        (
            "Flipped bits of each kind of file: noticed or harmless, never a wrong row",
            "2,000",
            "corruption",
            cases["corruption"],
        ),
        (
            "Seconds of the command after a kill between commit and publication, without the start of Python",
            "2",
            "recovery",
            f"median {more['recovery'].get('median', 0)}, longest {more['recovery'].get('longest', 0)} of {cases['recovery']}",
        ),
    ]


def _kills(more: Mapping[str, int], cases: str) -> str:
    return (
        f"{more.get('sites', 0)} x {more.get('seeds', 0)} ({more.get('pairs', 0)} pairs of site and operation): {cases}"
    )


def _power(found: Mapping[str, tuple[Figures, bool]]) -> list[str]:
    more = {suite: figures.more for suite, (figures, _) in found.items()}
    rename = more["put"].get("look then rename", {})
    return [
        f"* Mutants of the production code, each by the probes that should see it: {_of(more['mutants'].get('mutants'))}.",
        (
            f"* The same mutants, those of code that is in memory, by 300 histories: {_of(more['mutants'].get('in memory'))}. "
            "What is replaced there (files by content) it cannot see: probes do."
        ),
        f"* Faults of the model and of the fold below it, by the model: {_of(more['model'].get('faults'))}.",
        (
            f"* A look before a rename, instead of delta-rs' link, by the same duel: {rename.get('both', 0):,} of "
            f"{rename.get('rounds', 0):,} rounds had two winners. delta-rs links a finished file to its name (`linkat`, seen "
            "by `strace`), so no lock is needed around our commits on a local disk."
        ),
    ]


def _lacking(found: Mapping[str, tuple[Figures, bool]]) -> list[str]:
    lines = [
        f"* {suite}: {'under way' if figures.cases else 'not run'} for this code; `make crash` goes on with it."
        for suite, (figures, is_done) in found.items()
        if not is_done
    ]
    return [
        *lines,
        "* Model: publications of outputs and the ledger, snapshots and forgetting; no deletion of files.",
        "* Simulation: its goal of a million is hours of this machine; the command plays as many as its default says.",
        "* Duels of two Spark drivers: not built.",
        "* Timestamps and changed sources are among the bad input. Fuzzing, soak, coverage, mutation of all sources: not built.",
    ]


def _of(killed: Mapping[str, int] | None) -> str:
    return f"{killed['killed']} of {killed['of']}" if killed else "not run"
