"""Generated scenarios are repeatable by seed, and both twin and engine can play them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance import drive
from tests.conformance.build import MissingError
from tests.conformance.oracle.choices import choices
from tests.conformance.oracle.forms import FORMS, fresh
from tests.conformance.oracle.generate import generate, recorded

BASE = recorded()


def test_a_seed_repeats_its_scenarios() -> None:
    assert list(generate(BASE, 3, 20)) == list(generate(BASE, 3, 20))
    assert list(generate(BASE, 3, 20)) != list(generate(BASE, 4, 20))


@pytest.mark.parametrize("form", FORMS)
def test_scenarios_of_later_forms_are_repeatable_and_can_be_played(form: str) -> None:
    assert list(fresh(form, 3, 20)) == list(fresh(form, 3, 20)) != list(fresh(form, 4, 20))
    assert {drive.play(scenario, cut=True).error for scenario in fresh(form, 5, 30)} == {None}


def test_a_seed_repeats_its_choices() -> None:
    assert list(choices(3, 20)) == list(choices(3, 20))
    assert list(choices(3, 20)) != list(choices(4, 20))


@pytest.mark.parametrize("made", [generate(BASE, 5, 60), choices(5, 60)], ids=["varied", "choices"])
def test_what_is_made_can_be_played(made: Iterator[dict[str, Any]]) -> None:
    ends: Counter[str] = Counter()
    for scenario in made:
        try:
            ends[str((drive.play(scenario, cut=False).error or ("none",))[0])] += 1
        except MissingError:
            ends["missing"] += 1
    assert ends["none"] > 30
