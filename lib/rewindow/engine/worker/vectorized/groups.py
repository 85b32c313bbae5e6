"""The groups of a windowed aggregation: one slot for each window and key, found by an integer code.

A group is *held* until its final result is sent, *touched* if this run changed it, *restored* if it was in the
checkpoint's buffer. It is dropped when record execution's window store would expire its window.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rewindow.engine.worker.vectorized.errors import UnfitError
from rewindow.engine.worker.vectorized.folds import Fold, Operands, Rows
from rewindow.engine.worker.vectorized.group_frame import Array, Column, GroupFrame

_MOST_CODES = 2**62


class Groups:
    """Groups by window start and key number."""

    def __init__(self, folds: Sequence[Fold], *, step_ms: int, is_single: bool) -> None:
        """``step_ms`` divides all window starts. ``is_single``: see `FinalResultsPlan`."""
        self._folds = folds
        self._starts_at_first_value = is_single and folds[0].is_null_at_first
        columns: dict[str, Column] = {"start": (np.int64, 0), "key": (np.int64, 0), "timestamp": (np.int64, -1)}
        columns["updates"] = (np.int64, 0)
        columns |= dict.fromkeys(("held", "touched", "restored"), (np.bool_, False))
        for fold in folds:
            columns |= fold.columns()
        self.frame = GroupFrame(columns)
        self._codes = np.empty(0, np.int64)
        """The codes of all groups, ascending."""
        self._slots = np.empty(0, np.int64)
        """The slot of each code."""
        self._base, self._width, self._step = 0, 1, step_ms

    def find(self, starts: Array, keys: Array, key_count: int) -> Rows:
        """Return the groups of rows (at least one row). Creates missing groups."""
        least = int(starts.min()) // self._step
        self._fit(least, int(starts.max()) // self._step, key_count)
        encoded = pa.array((starts // self._step - self._base) * self._width + keys).dictionary_encode()
        codes, inverse = np.asarray(encoded.dictionary), np.asarray(encoded.indices).astype(np.intp)
        slots = self._slots_of(codes)
        return Rows(slots[inverse], slots, inverse, np.bincount(inverse, minlength=len(slots)))

    def take(self, rows: Rows, timestamps: Array, operands: Operands) -> None:
        """Fold rows into their groups, in row order."""
        frame = self.frame
        if self._starts_at_first_value:
            self._stamp_from_first_value(rows, timestamps, operands[self._folds[0].operand or 0].valid)
        else:
            np.maximum.at(frame["timestamp"], rows.slots, timestamps)
        for fold in self._folds:
            fold.take(frame, rows, operands)
        frame["updates"][rows.distinct] += rows.counts
        frame["touched"][rows.distinct] = True

    def without_value(self) -> Array:
        """Return a mask of the groups without state, which record execution's window store does not contain."""
        if not self._starts_at_first_value:
            return np.zeros(self.frame.size, np.bool_)
        return np.asarray(self.frame[f"{self._folds[0].name}.number"] == 0)

    def keep(self, mask: Array) -> None:
        """Drop the groups where the mask is false."""
        moved = np.cumsum(mask) - 1
        is_kept = mask[self._slots]
        self._codes, self._slots = self._codes[is_kept], moved[self._slots[is_kept]]
        self.frame.keep(mask)

    def renumber(self, keys: Array) -> None:
        """Set the key numbers of all groups."""
        self.frame["key"][:] = keys
        self._recode()

    def _stamp_from_first_value(self, rows: Rows, timestamps: Array, valid: Array | None) -> None:
        """Set timestamps to the largest since a group's first value; before that, to the one of its last row."""
        stamps, number = self.frame["timestamp"], self.frame[f"{self._folds[0].name}.number"]
        is_new = number[rows.distinct] == 0
        if valid is None:
            stamps[rows.distinct[is_new]] = -1
            np.maximum.at(stamps, rows.slots, timestamps)
            return
        count = len(timestamps)
        first = np.full(len(rows.distinct), count)
        with_value = np.flatnonzero(valid)[::-1]
        first[rows.inverse[with_value]] = with_value
        first[~is_new] = -1
        stamps[rows.distinct[is_new]] = -1
        counts = np.arange(count) >= first[rows.inverse]
        np.maximum.at(stamps, rows.slots[counts], timestamps[counts])
        without = first[rows.inverse] == count
        stamps[rows.slots[without]] = timestamps[without]  # for duplicate slots, the last assignment wins

    def _fit(self, least: int, most: int, key_count: int) -> None:
        """Choose a code width for all windows and keys. Raises `UnfitError` if codes exceed 64 bits."""
        if self.frame.size == 0 or least < self._base or key_count > self._width:
            if self.frame.size:
                least = min(least, int(self.frame["start"].min()) // self._step)
            self._base = least
            self._width = max(self._width, 1 << max(0, key_count - 1).bit_length())
            self._recode()
        if (most - self._base + 1) * self._width > _MOST_CODES:
            raise UnfitError

    def _recode(self) -> None:
        codes = (self.frame["start"] // self._step - self._base) * self._width + self.frame["key"]
        self._slots = np.argsort(codes, kind="stable")
        self._codes = codes[self._slots]

    def _slots_of(self, codes: Array) -> Array:
        positions = np.searchsorted(self._codes, codes)
        is_known = np.zeros(len(codes), np.bool_)
        in_range = positions < len(self._codes)
        is_known[in_range] = self._codes[positions[in_range]] == codes[in_range]
        slots = np.empty(len(codes), np.int64)
        slots[is_known] = self._slots[positions[is_known]]
        new = codes[~is_known]
        if len(new):
            order = np.argsort(new)
            made = self.frame.extend(len(new))
            self.frame["start"][made] = (new // self._width + self._base) * self._step
            self.frame["key"][made] = new % self._width
            slots[~is_known] = made
            into = positions[~is_known][order]
            self._codes = np.insert(self._codes, into, new[order])
            self._slots = np.insert(self._slots, into, made[order])
        return slots
