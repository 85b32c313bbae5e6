"""The stream time of each key: the largest time so far among its rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

NEVER = np.iinfo(np.int64).min


class KeyTimes:
    """The largest time so far of each key, by a 64-bit hash of the key: 16 bytes for each."""

    def __init__(self) -> None:
        """Begin without rows."""
        self._hashes = np.empty(0, dtype=np.uint64)
        self._latest = np.empty(0, dtype=np.int64)

    def add(self, hashes: Words, times: Longs) -> Longs:
        """Add rows in order, of which there are some; return the stream time of each row's key with that row."""
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        is_first = np.concatenate(([True], hashes[1:] != hashes[:-1]))
        keys, numbers = hashes[is_first], np.cumsum(is_first) - 1
        at, is_known = self._find(keys)
        before = np.full(len(keys), NEVER)
        before[is_known] = self._latest[at[is_known]]
        latest = np.maximum(_largest_so_far(numbers, times[order]), before[numbers])
        last = latest[np.concatenate((is_first[1:], [True]))]
        self._latest[at[is_known]] = last[is_known]
        if not is_known.all():
            self._hashes = np.insert(self._hashes, at[~is_known], keys[~is_known])
            self._latest = np.insert(self._latest, at[~is_known], last[~is_known])
        found: Longs = np.empty_like(latest)
        found[order] = latest
        return found

    def _find(self, keys: Words) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        """Return where keys are among those known, or would be inserted, and which of them are known."""
        at = np.searchsorted(self._hashes, keys)
        is_known = at < len(self._hashes)
        is_known[is_known] = self._hashes[at[is_known]] == keys[is_known]
        return at, is_known


def _largest_so_far(numbers: Longs, times: Longs) -> Longs:
    """Return the largest time so far within each group. Groups are numbered from 0 on and follow each other."""
    values, ranks = np.unique(times, return_inverse=True)
    base = numbers * len(values)
    found: Longs = values[np.maximum.accumulate(base + ranks) - base]
    return found
