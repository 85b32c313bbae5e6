"""Each case of the corpus ends with one clear error and its code, or in the quarantine. The job goes on as if there were none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bad_input import arguments, files, newcomer, newcomer_rides, processors, records, sources, user_code
from tests.bad_input.cases import Case, check, contents
from tests.bad_input.scene import Bench, copy_of, goes_on

pytestmark = pytest.mark.slow

FRESH = [
    *arguments.CASES,
    *newcomer.CASES,
    *newcomer_rides.CASES,
    *records.CASES,
    *sources.CASES,
    *(case for case in files.CASES if case.command.startswith("land")),
]
"""Cases that begin with an hour in the source that is not landed."""
LANDED = [
    *(case for case in files.CASES if not case.command.startswith("land")),
    *user_code.CASES,
    *processors.CASES,
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


@pytest.mark.parametrize("reason", records.QUARANTINED)
def test_an_invalid_record_is_quarantined_with_its_reason(template: Bench, tmp_path: Path, reason: str) -> None:
    given, count = records.QUARANTINED[reason]
    bench = copy_of(template, tmp_path / "project")
    given(bench)
    assert bench.json("land other")["quarantined"] == count
    assert bench.quarantined() == [reason] * count


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        (records.other("partition_time", t=None), 37),
        (records.bad(user=None), 13),
        (records.bad(user="x" * 100_000), 13),
    ],
    ids=["no timestamp, replaced", "no key", "a long key"],
)
def test_an_odd_record_is_landed(template: Bench, tmp_path: Path, given: Callable[[Bench], None], rows: int) -> None:
    bench = copy_of(template, tmp_path / "project")
    given(bench)
    feed = "other" if rows == 37 else "activity"
    report = bench.json(f"land {feed}")
    assert (report["rows"], report["quarantined"]) == (rows, 0)
