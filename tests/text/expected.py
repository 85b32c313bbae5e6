"""Whether an odd file is landed as the page says, or refused where it says."""

import math
import re

import pytest
from pydantic import ValidationError

from rewindow.engine.worker.text.text_rows import BadValueError
from rewindow.errors import RewindowError
from tests.text.reading import read_case


def alike(found, expected):
    if isinstance(expected, float) and isinstance(found, float):
        both_nan = math.isnan(found) and math.isnan(expected)
        return both_nan or (found == expected and math.copysign(1, found) == math.copysign(1, expected))
    if isinstance(expected, dict) and isinstance(found, dict):
        return found.keys() == expected.keys() and all(alike(found[name], expected[name]) for name in expected)
    if isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        return len(found) == len(expected) and all(map(alike, found, expected))
    return type(found) is type(expected) and found == expected


def check_case(case, mode, folder, monkeypatch):
    """Land an odd file; compare its rows, or where it is refused."""
    if case.refused is None:
        rows, types = read_case(case, folder, mode, monkeypatch)
        assert alike(rows, list(case.rows)), (mode, rows, case.rows)
        if case.types is not None:
            assert types == dict(case.types), mode
        return
    with pytest.raises((RewindowError, ValidationError, BadValueError)) as caught:
        read_case(case, folder, mode, monkeypatch)
    if case.refused.code == 78:
        assert isinstance(caught.value, ValidationError) or getattr(caught.value, "exit_code", None) == 78
        return
    message = str(caught.value)
    assert not isinstance(caught.value, ValidationError)
    assert case.refused.file in message
    if case.refused.line is not None:
        assert re.search(rf"line {case.refused.line}\b", message), (mode, message)
    if case.refused.column is not None:
        assert re.search(rf"(column|field) {re.escape(case.refused.column)}(?!\w)", message), (mode, message)
