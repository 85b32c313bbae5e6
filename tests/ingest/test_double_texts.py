"""Texts of numbers that no DOUBLE or FLOAT holds."""

from __future__ import annotations

import pytest

from rewindow.engine.worker.double_texts import wrong_text


@pytest.mark.parametrize(
    ("text", "kind", "is_wrong"),
    [
        ("1e400", "double", True),
        ("-1E999d", "double", True),
        ("Inf", "double", True),
        ("1e39", "float", True),
        ("1e39", "double", False),
        ("1.5f", "float", False),
        ("NaN", "double", False),
    ],
)
def test_a_number_beyond_its_type_is_wrong_unless_the_source_states_infinity(text, kind, is_wrong):
    assert (wrong_text(text, kind, {}) is not None) is is_wrong
    assert wrong_text(text, kind, {"positiveinf": "Inf"}) is None
