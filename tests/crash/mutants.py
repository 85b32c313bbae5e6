"""The power of the suites: how many mutants of the protocol are detected. Some suite must detect each."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.crash import simulation
from tests.crash.forks import answer, attempts
from tests.crash.matrix import folder, nothing, warm_up
from tests.crash.mutant import Mutant
from tests.crash.mutants_of_branches import MUTANTS_OF_BRANCHES
from tests.crash.mutants_of_commits import MUTANTS_OF_COMMITS
from tests.crash.mutants_of_feeds import MUTANTS_OF_FEEDS
from tests.crash.mutants_of_fold import MUTANTS_OF_FOLD
from tests.crash.mutants_of_upkeep import MUTANTS_OF_UPKEEP
from tests.crash.probes import Forged, Grounds, Probe, first_catch
from tests.crash.settings import Figures, Settings

MUTANTS = (*MUTANTS_OF_COMMITS, *MUTANTS_OF_BRANCHES, *MUTANTS_OF_FEEDS, *MUTANTS_OF_UPKEEP, *MUTANTS_OF_FOLD)


def suite(settings: Settings) -> Figures:
    """Check that each probe returns ``ok`` for unbroken code, and that each mutant has a probe that does not.

    ``quick``: only the mutants of the fold.
    """
    warm_up()
    chosen = [mutant for mutant in MUTANTS if not settings.quick or mutant.probes == [Forged()]]
    if settings.point:
        chosen = [mutant for mutant in chosen if settings.point in mutant.name]
    figures = Figures("mutants")
    with folder() as root:
        grounds = Grounds(root)
        probes = list(dict.fromkeys(probe for mutant in chosen for probe in mutant.probes))
        grounds.prepare(probes, settings.at_once)
        for said in attempts([partial(_clean, probe, grounds) for probe in probes], settings.at_once):
            figures.count(said.get("said", f"wrong: {said.get('error')}"), said.get("probe", "a probe"))
        survivors = []
        for said in attempts([partial(_tried, mutant, grounds) for mutant in chosen], settings.at_once):
            settings.say(
                f"mutant {said.get('name')}: {str(said.get('caught') or said.get('error') or 'SURVIVED')[:240]}"
            )
            if not said.get("caught"):
                survivors.append(said.get("name", "a mutant that could not be made"))
                figures.count("wrong: no probe detects it", f"mutant {survivors[-1]}")
    seeds = 0 if settings.quick else 300
    said = (
        list(attempts([partial(seen_in_memory, name, seeds) for name in IN_MEMORY], settings.at_once)) if seeds else []
    )
    power = {"killed": sum(bool(one.get("caught")) for one in said), "of": len(said)}
    figures.more = {
        "in memory": power,
        "mutants": {"killed": len(chosen) - len(survivors), "of": len(chosen)},
        "survivors": survivors,
    }
    return figures


IN_MEMORY = (
    *("ledger append without txn", "ledger: no exception means that it landed"),
    *(
        "ledger: an exception means that nothing landed",
        "ledger: whoever finds a row at its number takes it for its own",
    ),
    *("ledger: a row that came too late takes the next number", "publish without txn", "publish only the newest"),
    *("publish one ordinal too few", "publish before the COMMIT row", "no fence check before COMMIT"),
    *("the COMMIT of a fenced plan is pressed through", "a plan does not fence", "a rewind forgets to fence"),
    *(
        "a rewind takes the rows of another run",
        "a rewind takes no rows",
        "a table published anew keeps what was there",
    ),
    *("a promotion is decided once and pressed through", "a promotion leaves the rows that were there"),
    *("a promotion names the branch's files without copying them", "a table published anew gets what was rewound"),
    *("a table published anew leaves the old ids open", "a shared table gets the runs of one branch"),
    *("a run stands on every run that was committed", "a run forgets what its parent changed"),
    *("recovery does not publish", "the parent is not published before it is read"),
)
"""Mutants of code that is also used on tables in memory."""


def seen_in_memory(name: str, seeds: int) -> dict[str, Any]:
    """Return whether the simulation detects a mutant. Call it in a separate process."""
    next(mutant for mutant in MUTANTS if mutant.name == name).apply()
    for seed in range(seeds):
        try:
            bad = [word for _, word, _ in simulation.play([seed]) if word != "ok"]
        except Exception as error:  # noqa: BLE001 - a history that cannot be played counts as detected
            bad = [repr(error)]
        if bad:
            return {"name": name, "caught": f"seed {seed}: {bad[0]}"}
    return {"name": name, "caught": None}


def unmade() -> list[str]:
    """Return the errors of mutants that can no longer be made because the code that they break has changed."""
    return [said["error"] for said in attempts([partial(_made, mutant) for mutant in MUTANTS], 2) if "error" in said]


def _made(mutant: Mutant) -> dict[str, Any]:
    mutant.apply()
    return {}


def _clean(probe: Probe, grounds: Grounds) -> dict[str, Any]:
    caught = first_catch([probe], grounds, nothing)
    return {"probe": str(probe), "said": "ok" if caught is None else f"wrong: {caught}"}


def _tried(mutant: Mutant, grounds: Grounds) -> dict[str, Any]:
    answer(mutant.apply)  # fails if the mutant cannot be made, which must not count as detected
    return {"name": mutant.name, "caught": first_catch(mutant.probes, grounds, mutant.apply)}
