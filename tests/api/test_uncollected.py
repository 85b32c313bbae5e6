"""Pauses of the collection of garbage do not keep a long-lived process from collecting it."""

from __future__ import annotations

import gc
import weakref

import pytest

from rewindow.app.open_target import _COLLECTED_EVERY, without_collection


class Node:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.me = self


def kept(pauses: int, objects: int) -> int:
    """Return how many cycles of objects are left after so many pauses, each of which makes so many objects."""
    made = []
    for _ in range(pauses):
        with without_collection():
            made.append(weakref.ref(Node()))
            ledger = [[number] for number in range(objects)]
        del ledger
        some = [[number] for number in range(10_000)]  # what a command does before and after
        del some
    return sum(node() is not None for node in made)


@pytest.mark.parametrize("objects", [10, 60_000])
def test_what_commands_leave_in_cycles_is_collected_within_some_dozen_commands(objects: int) -> None:
    gc.collect()
    assert kept(3 * _COLLECTED_EVERY, objects) <= 2 * _COLLECTED_EVERY


def test_a_pause_collects_nothing_and_a_pause_within_a_pause_ends_with_the_outer_one() -> None:
    with without_collection():
        with without_collection():
            node = weakref.ref(Node())
        ledger = [[number] for number in range(200_000)]
        assert not gc.isenabled()
        assert node() is not None
    del ledger
    assert gc.isenabled()
