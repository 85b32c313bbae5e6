"""The records of a block of text, as columns of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a block of text: columns of text, the line of each record in the block, and what is wrong with some."""

    columns: Mapping[str, pa.Array]
    """Texts, all of the same length; null where a record has no value."""
    lines: npt.NDArray[np.int64]
    """0-based line in the block where each record begins."""
    faults: Mapping[int, str]
    """Row -> what is wrong with the record as a whole. Its columns are null then."""
