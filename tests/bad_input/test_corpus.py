"""Each case of the corpus ends with one clear error and its code, or in the quarantine. The job goes on as if there were none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input import arguments, files, newcomer, records, sources, user_code
from tests.bad_input.cases import Case, ask, check, contents
from tests.bad_input.scene import Bench, copy_of, goes_on

pytestmark = pytest.mark.slow

FRESH = [
    *newcomer.CASES,
    *records.CASES,
    *sources.CASES,
    *(case for case in files.CASES if case.command.startswith("land")),
]
"""Cases that begin with an hour in the source that is not landed."""
LANDED = [
    *(case for case in files.CASES if not case.command.startswith("land")),
    *user_code.CASES,
]
"""Cases that begin with a landing that no run has taken."""


Shared = tuple[Bench, frozenset[str]]
"""A project that cases share, and its files before the first of them."""


@pytest.fixture(scope="module")
def fresh(template: Bench, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    bench = copy_of(template, tmp_path_factory.mktemp("fresh") / "project")
    return bench, frozenset(contents(bench))


@pytest.fixture(scope="module")
def landed(template: Bench, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    bench = copy_of(template, tmp_path_factory.mktemp("landed") / "project")
    bench.done("land activity")
    return bench, frozenset(contents(bench))


@pytest.mark.parametrize("case", FRESH, ids=lambda case: case.name)
def test_an_error_before_a_landing_changes_nothing(case: Case, fresh: Shared) -> None:
    check(case, *fresh)


@pytest.mark.parametrize("case", LANDED, ids=lambda case: case.name)
def test_an_error_before_a_run_changes_nothing(case: Case, landed: Shared) -> None:
    check(case, *landed)


def test_after_all_errors_the_job_goes_on_as_if_there_had_been_none(
    template: Bench, fresh: Shared, landed: Shared, tmp_path: Path
) -> None:
    benches = [copy_of(template, tmp_path / "clean"), fresh[0], landed[0]]
    for bench in benches:
        goes_on(bench)
    results = [bench.result() for bench in benches]
    assert results[0] == results[1] == results[2]


def test_wrong_arguments_are_refused_and_change_nothing(template: Bench) -> None:
    before = template.files()
    for case in arguments.CASES:
        ask(case, template)
    assert template.files() == before


def test_invalid_records_are_quarantined_each_with_its_reason(bench: Bench) -> None:
    records.bad(*records.QUARANTINED.values())(bench)
    records.other(bench, "skip")
    assert bench.json("land other")["quarantined"] == len(records.QUARANTINED)
    assert bench.quarantined() == sorted(records.QUARANTINED)


def test_a_record_without_a_key_and_one_with_a_long_key_are_landed(bench: Bench) -> None:
    records.bad({"user": None}, {"user": "x" * 100_000})(bench)
    report = bench.json("land activity")
    assert (report["rows"], report["quarantined"]) == (14, 0)
