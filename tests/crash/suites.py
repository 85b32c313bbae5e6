"""The suites by name, in the order in which the command runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.crash import answers, duels, matrix, model, mutants, pairs, put, simulation, spark, workers
from tests.crash.settings import Figures, Settings

SUITES: Mapping[str, Callable[[Settings], Figures]] = {
    "matrix": matrix.suite,
    "holds": duels.holds,
    "answers": answers.suite,
    "duels": duels.duels,
    "put": put.suite,
    "simulation": simulation.suite,
    "pairs": pairs.suite,
    "model": model.suite,
    "spark": spark.suite,
    "workers": workers.suite,
    "mutants": mutants.suite,
}
