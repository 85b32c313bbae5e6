"""Two processes, one of which is held at a site while the other runs to its end.

A hold counts only if the process reached its site. Holds find cases that random duels miss.
"""

from __future__ import annotations

import os
import shutil
from functools import partial

from tests.crash.forks import Child, answer, fork
from tests.crash.matrix import Mutate, Outcome, folder, nothing, outcomes, warm_up
from tests.crash.meetings import PAIRS, Meeting, Pair, call, compared, meeting
from tests.crash.results import Results
from tests.crash.settings import Figures, Settings
from tests.crash.sites import Sites


def hold(pair: Pair, met: Meeting, seed: int, site: str, mutate: Mutate = nothing) -> Outcome:
    """Hold the first process at a site, let the second run to its end, release the first, then compare."""
    with folder() as root:
        warehouse = f"{root}/w"
        shutil.copytree(met.folder, warehouse)
        gate, signal = os.pipe()
        first = fork(partial(_held, warehouse, pair.one, site, gate, mutate))
        if not _reaches(first, site):
            return Outcome(pair.name, seed, site, f"not reached: {first.finish()} {first.said[-300:].decode()}")
        said = [_last(answer(partial(_calling, warehouse, pair.other, mutate)))]
        os.write(signal, b"x")
        first.finish()
        os.close(gate)
        os.close(signal)
        said.append(_last(first.said.decode()))
        return Outcome(pair.name, seed, site, compared(warehouse, said, met.expected, mutate, told=pair.told))


def _held(warehouse: str, operation: str, site: str, gate: int, mutate: Mutate, mark: int) -> None:
    mutate()

    def visit(name: str) -> None:
        if name == site:
            os.write(mark, f"{site}\n".encode())
            os.read(gate, 1)

    sites = Sites(warehouse, visit, fine=True)
    sites.install()
    os.write(mark, f"\n{call(warehouse, operation, sites)}".encode())


def _calling(warehouse: str, operation: str, mutate: Mutate) -> str:
    mutate()
    return call(warehouse, operation)


def _reaches(child: Child, site: str) -> bool:
    while chunk := os.read(child.pipe, 1 << 16):
        child.said += chunk
        if child.said.decode().startswith(f"{site}\n"):
            return True
    return False


def _last(text: str) -> str:
    return text.rpartition("\n")[2] if "\ndone" in text else text.partition("\n\n")[2] or text


def suite(settings: Settings) -> Figures:
    """Hold the first of each pair at each of its sites. ``quick``: at a few sites of two pairs."""
    figures, results = Figures("holds"), Results.of("holds", settings.results)
    warm_up()
    pairs = [PAIRS["run | run"], PAIRS["promote | rewind"]] if settings.quick else list(PAIRS.values())
    for pair in pairs:
        with folder() as root:
            met = meeting(root, pair, 0)
            sites = met.sites[:: max(1, len(met.sites) // 6)] if settings.quick else met.sites
            if settings.point:
                sites = [site for site in sites if settings.point in site or settings.point in pair.name]
            left = [site for site in sites if not results.knows(pair.name, 0, site)]
            results.note_sites(pair.name, 0, met.sites)
            results.keep(outcomes([partial(hold, pair, met, 0, site) for site in left], settings.at_once), settings.say)
            for site in sites:
                figures.count(results.said[pair.name, 0, site], f"{pair.name} held at {site}")
    figures.more = {"pairs": len(pairs)}
    return figures
