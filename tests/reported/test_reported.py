"""Bugs that users of other projects reported, as inputs of rewindow: no wrong row, no trace, no misleading advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindow.app.open_project import OpenProject
from tests.reported.list_of_reports import PAGE, REPORTS, page
from tests.reported.play import play
from tests.reported.report import Case, Landing

CASES = [(f"{report.number} {case.name}".replace(" ", "-"), case) for report in REPORTS for case in report.cases]


def needs_spark(case: Case) -> bool:
    return isinstance(case, Landing) and case.needs_spark


def unneeded(_project: OpenProject) -> None:
    raise AssertionError("Spark was started")


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES if not needs_spark(case)])
def test_a_reported_bug_is_none_here(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenProject, "spark", property(unneeded))
    play(case, tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES if needs_spark(case)])
def test_a_reported_bug_of_types_that_spark_reads_is_none_here(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: object
) -> None:
    monkeypatch.setattr(OpenProject, "spark", spark)
    play(case, tmp_path)


def test_the_page_lists_every_report_and_each_is_varied() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "python -m tests.reported"
    assert len({report.url for report in REPORTS}) == len(REPORTS)
    assert [report.number for report in REPORTS if len(report.cases) < 2] == []
