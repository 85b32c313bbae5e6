"""Texts of numbers that no DOUBLE or FLOAT holds, or that only Java takes for numbers."""

from __future__ import annotations

import pytest

from rewindow.engine.worker.double_texts import wrong_text


@pytest.mark.parametrize(
    ("text", "kind", "is_wrong"),
    [
        ("1e400", "double", True),
        ("-1E999", "double", True),
        ("Inf", "double", True),
        ("1e39", "float", True),
        ("1e39", "double", False),
        ("1.5f", "float", True),
        ("NaN", "double", False),
        ("3.4028235677973362e38", "float", False),
        ("3.4028235677973366e38", "float", True),
    ],
)
def test_a_number_beyond_its_type_or_for_java_alone_is_wrong(text, kind, is_wrong):
    assert (wrong_text(text, kind, {}) is not None) is is_wrong


@pytest.mark.parametrize(("text", "is_wrong"), [("oo", False), ("-Inf", False), ("Inf", True), ("1e400", True)])
def test_a_source_that_states_infinity_has_its_texts_of_it_and_no_other(text, is_wrong):
    assert (wrong_text(text, "double", {"positiveinf": "oo"}) is not None) is is_wrong
