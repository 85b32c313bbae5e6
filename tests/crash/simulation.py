"""Many small random histories on tables in memory: the production runner under all kinds of faults.

In a history, a few processes execute commands on one job. At each point, a process may die, the answer of its commit may be
lost or late, a listing may omit the newest versions, a bit of a staged file may flip, the disk may be full, or the clock may
jump. The next process continues from there. Finally, a process without faults finishes, and the tables must equal the result
of a simple loop over the epochs.
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
    """Play the histories of all seeds, except those with stored outcomes."""
    figures, results = Figures("simulation"), Results.of("simulation", settings.results)
    through = QUICK_SEEDS if settings.quick else SEEDS
    chunks = [range(first, min(first + CHUNK, through)) for first in range(0, through, CHUNK)]
    left = [chunk for chunk in chunks if not results.knows("history", chunk.start, str(len(chunk)))]
    met: Counter[str] = Counter()
    for said in side_by_side([partial(_chunk, chunk) for chunk in left], settings.at_once):
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
    """Play histories. Return the seed, outcome and counts of each."""
    said = []
    with in_memory():
        for seed in seeds:
            simulation = Simulation(seed)
            said.append((seed, simulation.run(), dict(simulation.met)))
    return said
