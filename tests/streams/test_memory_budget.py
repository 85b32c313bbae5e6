"""When a store samples its rows and when it flushes them."""

from __future__ import annotations

from rewindow.streams.state.spilling_map import MemoryBudget


class Rows:
    """Rows of which ``fits`` fit into memory."""

    def __init__(self, fits: int) -> None:
        self.fits, self.count, self.samples, self.flushes = fits, 0, 0, 0

    def count_resident(self) -> int:
        return self.count

    def capacity(self) -> int:
        self.samples += 1
        return self.fits

    def flush(self) -> None:
        self.flushes += 1
        self.count = 0


def test_a_small_store_that_is_rewritten_for_ever_is_rarely_sampled():
    rows = Rows(fits=1000)
    budget = MemoryBudget(rows)
    for number in range(100_000):
        rows.count = 40 + number % 20
        budget.spend()
    assert rows.samples <= 15
    assert rows.flushes == 0


def test_rows_that_grow_where_they_are_are_noticed():
    rows = Rows(fits=1000)
    budget = MemoryBudget(rows)
    rows.count = 100
    for _ in range(20_000):
        budget.spend()
    rows.fits = 50  # each row takes twenty times as much now
    for _ in range(10_000):
        budget.spend()
    assert rows.flushes == 1


def test_memory_never_holds_more_rows_than_fit():
    rows = Rows(fits=700)
    budget = MemoryBudget(rows)
    most = 0
    for _ in range(5000):
        rows.count += 1
        budget.spend()
        most = max(most, rows.count)
    assert most <= 700
    assert rows.flushes == 7
    assert rows.samples < 60


def test_nothing_is_flushed_while_an_attempt_may_be_rolled_back():
    rows = Rows(fits=10)
    budget = MemoryBudget(rows)
    budget.hold(is_held=True)
    for _ in range(100):
        rows.count += 1
        budget.spend()
    assert rows.flushes == 0
    budget.hold(is_held=False)
    assert rows.flushes == 1
