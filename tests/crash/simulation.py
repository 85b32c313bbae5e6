"""Many small histories on tables in memory, each from a seed: the production runner under every fault that it may meet.

A history is a few processes, each with commands to give, on one job. At each point a process may die, its commit's answer
may be lost or come late, a listing may lack the newest versions, a staged file may change a bit, the disk may be full, the
clock may jump; and whoever comes next goes on from there. In the end a process without faults finishes, and the tables
must hold what a simple loop over the epochs gives.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from tests.crash.forks import side_by_side
from tests.crash.history import Simulation
from tests.crash.matrix import Outcome
from tests.crash.memory_tables import in_memory
from tests.crash.results import Results
from tests.crash.settings import Figures, Settings

SEEDS, QUICK_SEEDS, CHUNK = 20_000, 100, 250


def suite(settings: Settings) -> Figures:
    """Play histories, seed by seed; what was played before is not played again."""
    figures, results = Figures("simulation"), Results.of("simulation", settings.results)
    through = QUICK_SEEDS if settings.quick else SEEDS
    chunks = [range(first, min(first + CHUNK, through)) for first in range(0, through, CHUNK)]
    left = [chunk for chunk in chunks if not results.knows("history", chunk.start, str(len(chunk)))]
    met: Counter[str] = Counter()
    for said in side_by_side([partial(_chunk, chunk) for chunk in left], settings.at_once):
        if "error" in said:
            raise RuntimeError(said["error"])
        results.add(Outcome("history", said["first"], str(said["seeds"]), json.dumps(said)))
    for (name, _, _), text in results.said.items():
        if name == "history":
            said = json.loads(text)
            met.update(said["met"])
            figures.cases += said["seeds"] - len(said["bad"])
            for seed, word in said["bad"]:
                figures.count(word, f"seed {seed}")
    figures.more = dict(met)
    return figures


def _chunk(seeds: range) -> dict[str, Any]:
    said = play(seeds)
    met: Counter[str] = Counter()
    for _, _, more in said:
        met.update(more)
    return {
        "first": seeds.start,
        "seeds": len(seeds),
        "met": met,
        "bad": [[seed, word] for seed, word, _ in said if word != "ok"],
    }


def play(seeds: Sequence[int]) -> list[tuple[int, str, dict[str, int]]]:
    """Play histories; say of each what came of it."""
    said = []
    with in_memory():
        for seed in seeds:
            simulation = Simulation(seed)
            said.append((seed, simulation.run(), dict(simulation.met)))
    return said
