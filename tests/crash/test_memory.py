"""A quick part of the suites in one process: histories and pairs of points in memory, the model, forged ledgers."""

from __future__ import annotations

import pytest

from tests.crash.forged import FORGED, accepted
from tests.crash.interleavings import Bounds, Model
from tests.crash.memory_tables import in_memory
from tests.crash.model import FAULTS
from tests.crash.pairs import ground, meet
from tests.crash.simulation import play


def test_histories_with_faults_end_as_a_plain_loop_does():
    said = play(range(60))
    assert [(seed, word) for seed, word, _ in said if word != "ok"] == []
    assert sum(met.get("kills", 0) for _, _, met in said) > 10
    assert sum(met.get("exit 75", 0) for _, _, met in said) > 10
    for of_gc in ("SNAPSHOT", "FORGET", "deleted"):
        assert sum(met.get(of_gc, 0) for _, _, met in said) > 0, f"the histories contain no {of_gc}"


def test_a_history_repeats_by_its_seed():
    assert play([7, 8, 9]) == play([7, 8, 9])


@pytest.mark.parametrize(
    "pair",
    [
        ("run", "run"),
        ("run", "rewind"),
        ("promote", "run"),
        ("rewind", "promote"),
        ("republish", "rewind"),
        ("gc", "run"),
        ("run", "gc"),
        ("gc", "promote"),
    ],
)
def test_two_held_at_a_few_points_end_well(pair):
    with in_memory():
        world = ground()
        for first in range(1, 60, 13):
            for second in range(1, 60, 17):
                assert meet(world, *pair, first, second)[0] == "ok", (first, second)


def test_every_interleaving_of_two_runners_is_legal():
    said = Model(Bounds(runs=2, crashes=1, late=1)).explore(100_000, 60)
    assert (said["wrong"], said["exhaustive"]) == (None, True)
    assert said["states"] > 1_000


@pytest.mark.parametrize("fault", FAULTS)
def test_the_model_sees_each_fault(fault):
    assert Model(FAULTS[fault], frozenset([fault])).explore(200_000, 60)["wrong"]


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_ledger_is_refused_at_its_last_row(name):
    assert accepted(name) == "ok"
