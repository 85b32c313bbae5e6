"""Each requirement of the five proposals is implemented, or is a row of the table of differences."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import rewindow
from rewindow.testing import load
from tests.conformance.scenario import HERE
from tests.differences import differences
from tests.oracle.rules import SWITCHES

TESTS = HERE.parent
ASKS = [
    pytest.param(ask, id=f"{part['proposal']}: {ask['says']}")
    for part in yaml.safe_load((HERE / "proposals.yaml").read_text(encoding="utf-8"))
    for ask in part["asks"]
]


@cache
def transcripts() -> set[str]:
    return {case.name for path in (TESTS / "transcripts").glob("*.yaml") for case in load(path)}


@cache
def functions() -> set[str]:
    found: set[str] = set()
    for path in Path(TESTS).glob("*/test_*.py"):
        found.update(re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    return found


@pytest.mark.parametrize("ask", ASKS)
def test_what_a_proposal_asks_for_is_here(ask: dict[str, Any]) -> None:
    assert set(ask) <= {"says", "here", "transcript", "test", "row"}
    assert len(ask) > 1, "name the place that answers this requirement"
    for name in ask.get("here", ()):
        owner, _, member = name.partition(".")
        assert owner in rewindow.__all__
        assert not member or hasattr(getattr(rewindow, owner), member)
    assert ask.get("transcript") is None or ask["transcript"] in transcripts()
    assert ask.get("test") is None or ask["test"] in functions()
    assert ask.get("row") is None or ask["row"] in {one.what for one in differences()}


@pytest.mark.parametrize("number", sorted(SWITCHES))
def test_each_switch_of_the_twin_is_a_row_of_the_table(number: str) -> None:
    assert number in {one.what for one in differences()}
