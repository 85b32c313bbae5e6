"""Each case of the corpus ends with one clear error and its exit code, or in the quarantine. Tables stay unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input import (
    arguments,
    conf,
    files,
    newcomer,
    newcomer_rides,
    processors,
    records,
    sources,
    typing_mistakes,
    user_code,
)
from tests.bad_input.cases import Case, assert_clear, check
from tests.bad_input.scene import Bench, copy_of, goes_on

pytestmark = pytest.mark.slow

STILL = [*arguments.CASES, *conf.CASES, *newcomer.CASES, *newcomer_rides.CASES, *typing_mistakes.CASES]
"""Cases that are refused before anything changes, so they share one project."""
CASES = [*records.CASES, *sources.CASES, *files.CASES, *user_code.CASES, *processors.CASES]


@pytest.fixture(scope="module")
def landed(template: Bench, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Return the project with the third hour landed, where most cases start."""
    bench = copy_of(template, tmp_path_factory.mktemp("landed") / "project")
    assert bench.run("land", "activity").code == 0
    return bench


@pytest.fixture(scope="module")
def clean(template: Bench, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    bench = copy_of(template, tmp_path_factory.mktemp("clean") / "project")
    goes_on(bench)
    return bench.result()


@pytest.mark.parametrize("case", STILL, ids=lambda case: case.name)
def test_wrong_arguments_are_refused_before_anything_is_touched(case: Case, template: Bench) -> None:
    before = template.files()
    asked = {name: (template.root / name).read_bytes() for name in before if name.startswith("conf/")}
    case.given(template)
    try:
        given = template.files()
        answer = template.run(*(word.replace("~", " ") for word in case.command.split()))
        assert template.files() == given
    finally:
        for name in template.files().keys() - before.keys():
            (template.root / name).unlink()
        for name, data in asked.items():
            (template.root / name).write_bytes(data)
    assert_clear(case, answer)
    assert template.files() == before


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_error_is_reported_and_changes_nothing(
    case: Case, template: Bench, landed: Bench, clean: dict[str, str], tmp_path: Path
) -> None:
    check(case, landed if case.landed else template, tmp_path / "project", clean)


def test_the_size_of_the_corpus() -> None:
    names = [case.name for case in (*STILL, *CASES)]
    assert len(names) == len(set(names))
    assert len(names) >= 150
