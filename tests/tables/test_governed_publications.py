"""The publications of governed tables are compared with the ledger in one loop, with or without the rows."""

from __future__ import annotations

from typing import Any

import pytest

from rewindow.control.plan.job_fold import COMMIT, fold
from rewindow.control.plan.job_state import JobState, LedgerRow
from rewindow.control.plan.spec import MAIN, TargetTotal
from rewindow.tables.governed import check_published
from rewindow.tables.governed.table_history import TableLook
from tests.control.ledgers import commit_of, plan_row, planned
from tests.refusals import Refusal

OLDER = Refusal("job-ledger-behind-tables", {"published": 2, "known": 1})


def runs(count: int) -> JobState:
    rows: list[LedgerRow] = []
    for number in range(1, count + 1):
        spec = planned(rows, f"a{number}", through_landing=number)
        rows.append(plan_row(spec))
        commit = commit_of(fold(rows), spec, {"output/totals": TargetTotal(1, 1, 1, "0")})
        rows.append(LedgerRow(len(rows) + 1, COMMIT, commit.as_json()))
    return fold(rows)


@pytest.mark.parametrize("only_ledger", [True, False])
@pytest.mark.parametrize(
    ("committed", "published", "later", "is_refused"),
    [(1, 2, 1, True), (1, 2, 2, False), (2, 1, 2, False), (2, 2, 2, False)],
    ids=["an older ledger", "another process has committed", "behind", "equal"],
)
def test_only_a_ledger_that_stays_behind_its_tables_is_refused(
    monkeypatch: pytest.MonkeyPatch, committed: int, published: int, later: int, *, is_refused: bool, only_ledger: bool
) -> None:
    counted: list[int] = []
    monkeypatch.setattr(check_published, "exists", lambda *_: True)
    monkeypatch.setattr(check_published, "check_counts", lambda _spark, _job, of, *_: counted.append(of.rows))
    now, look = runs(later), TableLook(published, is_untouched=True, version=published)
    anything: Any = str

    def check() -> None:
        check_published.check_published(
            anything, "counts", runs(committed), MAIN, anything, lambda: now, lambda *_: look, only_ledger=only_ledger
        )

    if is_refused:
        with OLDER:
            check()
    else:
        check()
    assert counted == ([] if only_ledger or is_refused else [now.rows])
