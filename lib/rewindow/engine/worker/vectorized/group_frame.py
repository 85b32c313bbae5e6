"""The state of groups as named NumPy columns of equal length. A slot is the row of one group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Column = tuple[Any, Any]
"""The dtype of a column, and the value that new slots have."""


class GroupFrame:
    """Columns of equal length. A column from `__getitem__` is a view that `extend` and `keep` invalidate."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        """Define the columns. There are no slots yet."""
        self._fills = dict(columns)
        self._arrays = {name: np.empty(0, dtype) for name, (dtype, _) in columns.items()}
        self.size = 0
        self.bounds: dict[str, int] = {}
        """Upper bounds on the absolute values of columns with sums; without one, all values are 0."""

    def __getitem__(self, name: str) -> Array:
        """Return a column."""
        return self._arrays[name][: self.size]

    def extend(self, number: int) -> Array:
        """Add slots and return them."""
        first, self.size = self.size, self.size + number
        for name, (dtype, fill) in self._fills.items():
            array = self._arrays[name]
            if len(array) < self.size:
                array = self._arrays[name] = np.concatenate([array[:first], np.empty(self.size, dtype)])
            array[first : self.size] = fill
        return np.arange(first, self.size)

    def keep(self, mask: Array) -> None:
        """Drop the slots where the mask is false. The others keep their order and move together."""
        for name in self._arrays:
            self._arrays[name] = self[name][mask]
        self.size = int(np.count_nonzero(mask))
