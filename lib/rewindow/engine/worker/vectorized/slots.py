"""Named columns of numbers that grow together: the groups of vectorized execution, one slot each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Column = tuple[Any, Any]
"""The type of a column and what a new slot has in it."""


class Frame:
    """Columns of one length. What `__getitem__` gives is a view: it is void after `extend` or `keep`."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        """Name the columns; there are no slots yet."""
        self._fills = dict(columns)
        self._arrays = {name: np.empty(0, dtype) for name, (dtype, _) in columns.items()}
        self.size = 0

    def __getitem__(self, name: str) -> Array:
        """Return a column."""
        return self._arrays[name][: self.size]

    def extend(self, number: int) -> Array:
        """Add slots; return their places."""
        first, self.size = self.size, self.size + number
        for name, (dtype, fill) in self._fills.items():
            array = self._arrays[name]
            if len(array) < self.size:
                array = self._arrays[name] = np.concatenate([array[:first], np.empty(self.size, dtype)])
            array[first : self.size] = fill
        return np.arange(first, self.size)

    def keep(self, mask: Array) -> None:
        """Drop the slots where the mask is false; those that stay move together, in their order."""
        for name in self._arrays:
            self._arrays[name] = self[name][mask]
        self.size = int(np.count_nonzero(mask))
