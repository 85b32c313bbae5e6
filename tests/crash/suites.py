"""The suites by name, in the order in which the command executes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tests.crash import (
    answers,
    command_histories,
    duels,
    examined,
    holds,
    matrix,
    model,
    mutants,
    mutated_bytes,
    pairs,
    put,
    random_kills,
    recovery,
    simulation,
    spark,
    stops,
    workers,
)
from tests.crash.settings import Figures, Settings


def _governed(settings: Settings) -> Figures:
    from tests.crash import governed  # imports gRPC, with which the other suites must not fork

    return governed.suite(settings)


SUITES: Mapping[str, Callable[[Settings], Figures]] = {
    "matrix": matrix.suite,
    "holds": holds.suite,
    "answers": answers.suite,
    "duels": duels.suite,
    "put": put.suite,
    "simulation": simulation.suite,
    "pairs": pairs.suite,
    "model": model.suite,
    "spark": spark.suite,
    "workers": workers.suite,
    "governed": _governed,
    "mutants": mutants.suite,
    "recovery": recovery.suite,
    "random-kills": random_kills.suite,
    "stops": stops.suite,
    "mutated-bytes": mutated_bytes.suite,
    "histories": command_histories.suite,
    **{name: partial(examined.suite, name) for name in examined.SELECTIONS},
}
