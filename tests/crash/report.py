"""The results page: measurements of the guarantees of L5, and what is missing.

It is rendered from the figures of suites that ended, which `finished.json` keeps, and from nothing else. What was not
finished, and what was finished on other code, the command says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash import finished
from tests.crash.results import Results
from tests.crash.settings import BAD, Figures

PAGE = Path(__file__).parent / "RESULTS.md"
STORED = ("matrix", "spark", "workers", "governed", "holds", "duels", "answers")
"""Suites that store each case, so they can be incomplete."""


@dataclass(frozen=True)
class Known:
    """The figures of a suite that ended, and the commit and date of its end."""

    figures: Figures
    ended: str = "-"

    @property
    def more(self) -> dict[str, Any]:
        """See `Figures`."""
        return self.figures.more


def unfinished(folder: Path | None, suites: Iterable[str], page: Path = PAGE) -> list[str]:
    """Return a line for each suite that did not end for the current code."""
    kept, lines = finished.load(page.with_name(finished.KEPT.name)), []
    for suite in suites:
        ended, cases = kept.get(suite), _so_far(suite, folder).cases
        if ended and ended.is_current:
            continue
        state = f"ended on older code ({ended.commit})" if ended else "did not end"
        lines.append(f"{suite}: {state}" + (f", incomplete on this code: {cases:,} cases" if cases else ""))
    return lines


def _so_far(suite: str, folder: Path | None) -> Figures:
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
    return figures


def write(suites: Iterable[str], page: Path = PAGE) -> None:
    """Write the page."""
    page.write_text(rendered(suites, page), encoding="utf-8")


def rendered(suites: Iterable[str], page: Path = PAGE) -> str:
    """Return the page."""
    kept = finished.load(page.with_name(finished.KEPT.name))
    found = {
        suite: Known(kept[suite].figures, f"{kept[suite].commit}, {kept[suite].date}")
        if suite in kept
        else Known(Figures(suite))
        for suite in suites
    }
    lines = [*HEAD, "", "| Measurement | Goal | Result | Failures | Commit, date |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {what} | {goal} | {_state(found, suite, text)} |" for what, goal, suite, text in _rows(found)]
    lines += [
        "",
        "## Power",
        "",
        *_power(found),
        "",
        "## What is missing",
        "",
        *_lacking(found),
        "",
    ]
    return "\n".join(lines)


HEAD = (
    "# Results of the fault matrix: nothing lost, nothing doubled",
    "",
    "`make crash` writes this page, and resumes where it was stopped. A case that was not reached counts as a failure.",
    "",
    (
        "Each suite uses the seeds 0, 1, 2 ..., that of governed tables 1 and 2. The last column is the commit at which "
        "the suite ended; `python -m tests.crash --report` names the suites whose code has changed since. `finished.json` "
        "keeps the figures."
    ),
)


def _state(found: Mapping[str, Known], suite: str, text: str) -> str:
    one = found[suite]
    figures = one.figures
    bad = ", ".join(f"{getattr(figures, word)} {word.replace('_', ' ')}" for word in BAD if getattr(figures, word))
    if not figures.cases:
        return "not run | - | -"
    return f"{text} | {bad or '0'} | {one.ended}"


def _rows(found: Mapping[str, Known]) -> list[tuple[str, str, str, str]]:
    more = {suite: one.more for suite, one in found.items()}
    cases = {suite: f"{one.figures.cases:,}" for suite, one in found.items()}
    pairs, model, put = more["pairs"].get("points", {}), more["model"], more["put"].get("delta-rs", {})
    return [
        (
            "Model checker: states explored / configurations explored completely",
            "10 M / all",
            "model",
            f"{model.get('states', 0):,} / {model.get('exhaustive', 0)} of {model.get('of', 0)}",
        ),
        (
            "Mutants of the protocol that a probe detects",
            "25 of 25",
            "mutants",
            f"{_of(more['mutants'].get('mutants'))}; {cases['mutants']} probes pass on unbroken code",
        ),
        (
            "Kills of processes on Delta tables: sites x seeds",
            "60 x 20",
            "matrix",
            _kills(more["matrix"], cases["matrix"]),
        ),
        (
            "Kills of drivers whose tasks run on Spark: sites x seeds",
            "60 x 3",
            "spark",
            _kills(more["spark"], cases["spark"]),
        ),
        (
            "Kills of clients of Spark Connect during and after each statement on governed tables: sites x seeds",
            "every site x 2",
            "governed",
            f"{_kills(more['governed'], cases['governed'])}, {more['governed'].get('during', 0)} during a statement",
        ),
        ("Kills of Python workers of Spark at a random record", "500", "workers", cases["workers"]),
        ("Simulated histories with faults, on tables in memory", "1 M", "simulation", cases["simulation"]),
        (
            "Two processes, each held at a point: pairs of points, in memory",
            "3,600",
            "pairs",
            f"{cases['pairs']} ({', '.join(f'{name} {count}' for name, count in pairs.items())} points)",
        ),
        ("One process held at each site while another runs to its end", "every site", "holds", cases["holds"]),
        (
            "Duels of two and eight processes",
            "2,000 (first milestone: 1,000)",
            "duels",
            (
                f"{cases['duels']} rounds, {more['duels'].get('kills', 0):,} kills, {more['duels'].get('contested', 0):,} "
                "in which two reached the same commit"
            ),
        ),
        ("Commands killed at a random moment, then called again", "200", "random-kills", cases["random-kills"]),
        (
            "Commands stopped at a known site (SIGSTOP) while another one runs, then continued",
            "60",
            "stops",
            f"{cases['stops']}, in {more['stops'].get('overtaken', 0)} of which the stopped one had been overtaken",
        ),
        (
            "Commands before which a byte of the warehouse changed, called again after it was restored",
            "200",
            "mutated-bytes",
            cases["mutated-bytes"],
        ),
        (
            "Histories of 15 to 30 random commands with kills, broken sources and lost files, compared with a naive count",
            "60",
            "histories",
            (
                f"{cases['histories']} ({more['histories'].get('commands', 0):,} commands, "
                f"{more['histories'].get('kills', 0)} kills, {more['histories'].get('advice followed', 0)} advices followed)"
            ),
        ),
        (
            "Commits with a lost, refused, made-up, repeated or delayed answer",
            "every commit",
            "answers",
            cases["answers"],
        ),
        (
            "Versions on a local disk that two processes were both told to have committed",
            "0",
            "put",
            f"{put.get('both', 0)} of {put.get('rounds', 0):,} ({put.get('contested', 0):,} with overlapping commits)",
        ),
        (
            "Random topologies with random cuts into runs: examples",
            "1,000 topologies x 20 cuts",
            "chunking",
            f"{cases['chunking']} (each a topology and a cut)",
        ),
        (
            "Random topologies with other batches, task orders, hash seeds, or spilling: examples",
            "1,000 topologies x 12 settings",
            "layouts",
            f"{cases['layouts']} (each a topology and a setting)",
        ),
        (
            "Order of the records of several logs, compared with a naive merge: examples",
            "1,000",
            "order",
            cases["order"],
        ),
        (
            "Bad input: one clear error with its exit code, or the quarantine; tables unchanged",
            "500 (first milestone: 150)",
            "corpus",
            cases["corpus"],
        ),
        (
            "Flipped bits in each kind of file: noticed or harmless, never a wrong row",
            "2,000",
            "corruption",
            cases["corruption"],
        ),
        (
            "Seconds of the next command after a kill between commit and publication, without Python's start",
            "2",
            "recovery",
            f"median {more['recovery'].get('median', 0)}, longest {more['recovery'].get('longest', 0)}, of {cases['recovery']}",
        ),
    ]


def _kills(more: Mapping[str, int], cases: str) -> str:
    return (
        f"{more.get('sites', 0)} x {more.get('seeds', 0)} ({more.get('pairs', 0)} pairs of site and operation): {cases}"
    )


def _power(found: Mapping[str, Known]) -> list[str]:
    more = {suite: one.more for suite, one in found.items()}
    rename = more["put"].get("look then rename", {})
    return [
        f"* Mutants of production code that one of their probes detects: {_of(more['mutants'].get('mutants'))}.",
        (
            f"* Mutants of code that is also used on tables in memory, detected by 300 simulated histories: "
            f"{_of(more['mutants'].get('in memory'))}. The simulation replaces the storage of files, so it cannot "
            "detect faults there. The probes detect them."
        ),
        f"* Faults in the model and in the production fold, detected by the model: {_of(more['model'].get('faults'))}.",
        (
            f"* Control of the test for versions: with a check before a rename instead of delta-rs' link, "
            f"{rename.get('both', 0):,} of {rename.get('rounds', 0):,} rounds had two winners. delta-rs links a finished file to "
            "its name (`linkat`, seen by `strace`), so no lock is needed around our commits on a local disk."
        ),
    ]


def _lacking(found: Mapping[str, Known]) -> list[str]:
    lines = [
        f"* {suite}: not run. `make crash CRASH=--unfinished` runs or continues it."
        for suite, one in found.items()
        if not one.figures.cases
    ]
    return [
        *lines,
        "* The model covers the ledger, publication, snapshots and the removal of old state, but not the deletion of files.",
        "* A million simulated histories take hours on this machine, so the command plays fewer.",
        "* Duels of two Spark drivers are not implemented.",
        "* Fuzzing, soak tests, coverage and mutation of all sources are not implemented.",
    ]


def _of(killed: Mapping[str, int] | None) -> str:
    return f"{killed['killed']} of {killed['of']}" if killed else "not run"
