"""Distinct values equal those that numpy finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow.engine.worker.arrow_rows import distinct


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.int16])
@given(values=st.lists(st.integers(-5, 5) | st.integers(-(2**15), 2**15 - 1)))
def test_they_are_those_of_numpy(kind: type, values: list[int]) -> None:
    given_values = np.array(values, dtype=kind)
    found = distinct(given_values)
    assert found.dtype == kind
    assert found.tolist() == np.unique(given_values).tolist()
    assert given_values.tolist() == values
