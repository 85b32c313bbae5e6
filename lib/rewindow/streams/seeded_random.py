"""A random number generator seeded with a text: the bits of SHA-256 over the text and a counter.

Python's own generator does not qualify: only its ``random()`` is guaranteed to return the same numbers in later versions
of Python, and a replay must not depend on the version.
"""

from __future__ import annotations

import hashlib
from collections.abc import MutableSequence, Sequence
from typing import Any, TypeVar

from rewindow.errors import DataError

Item = TypeVar("Item")

_BLOCK_BITS = 256


class SeededRandom:
    """A deterministic random number generator, with the method names of Python's ``random.Random``."""

    __slots__ = ("_bits", "_left", "_round", "_seed")

    def __init__(self, seed: str) -> None:
        self._seed = hashlib.sha256(f"random:{seed}".encode()).digest()
        self._round = 0
        self._bits = 0
        self._left = 0

    def getrandbits(self, k: int) -> int:
        """Return an integer of ``k`` random bits. Raises `DataError` if ``k`` is negative."""
        if k < 0:
            raise DataError(f"getrandbits({k}): the number of bits must be 0 or more")
        while self._left < k:
            block = hashlib.sha256(self._seed + self._round.to_bytes(8)).digest()
            self._round += 1
            self._bits = self._bits << _BLOCK_BITS | int.from_bytes(block)
            self._left += _BLOCK_BITS
        self._left -= k
        taken = self._bits >> self._left
        self._bits &= (1 << self._left) - 1
        return taken

    def random(self) -> float:
        """Return a float in [0, 1), a multiple of 2**-53."""
        return self.getrandbits(53) / 9007199254740992

    def uniform(self, a: float, b: float) -> float:
        """Return a float between ``a`` and ``b``."""
        return a + (b - a) * self.random()

    def randbelow(self, n: int) -> int:
        """Return a uniformly distributed integer in [0, n). Raises `DataError` if ``n`` is below 1."""
        if n < 1:
            raise DataError(f"there is no integer in [0, {n}): give 1 or more")
        bits = (n - 1).bit_length()
        while (drawn := self.getrandbits(bits)) >= n:
            pass
        return drawn

    def randint(self, a: int, b: int) -> int:
        """Return a uniformly distributed integer in [a, b]. Raises `DataError` if ``b`` is below ``a``."""
        return a + self.randbelow(b - a + 1)

    def choice(self, seq: Sequence[Item]) -> Item:
        """Return one item of a sequence. Raises `DataError` if it is empty."""
        return seq[self.randbelow(len(seq))]

    def shuffle(self, x: MutableSequence[Any]) -> None:
        """Shuffle a list in place."""
        for last in range(len(x) - 1, 0, -1):
            other = self.randbelow(last + 1)
            x[last], x[other] = x[other], x[last]

    def sample(self, population: Sequence[Item], k: int) -> list[Item]:
        """Return ``k`` items from distinct positions, in random order. Raises `DataError` if there are fewer."""
        if not 0 <= k <= len(population):
            raise DataError(f"a sample of {k} out of {len(population)}: give 0 to {len(population)}")
        items = list(population)
        self.shuffle(items)
        return items[:k]
