"""Another writer replaces rows of an output by as many others: `verify`, `diff`, `report` and `why` name the table (74)."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from rewindow.app.api.project import Project
from tests.bad_input.scene import Answer, Bench
from tests.refusals import refused

REPAIR = "`rewindow republish counts`"


def totals(bench: Bench) -> DeltaTable:
    return DeltaTable(bench.warehouse / "alerts/totals")


@pytest.fixture
def altered(bench: Bench) -> Bench:
    """A project in which all rows of the output have another value."""
    totals(bench).update({"value": "value + 1"})
    return bench


def assert_named(answer: Answer, *says: str) -> None:
    assert answer.code == 74, answer
    for words in ("alerts/totals has other rows of run main/", "altered outside rewindow", *says):
        assert words in answer.err, answer.err


def test_verify_compares_the_tables_with_what_was_published(altered: Bench) -> None:
    assert_named(altered.run("verify", "counts", "main/1", "main/2"), REPAIR)
    assert_named(altered.run("verify", "counts"), REPAIR)
    assert altered.run("republish", "counts").code == 0
    assert altered.run("verify", "counts", "main/1", "main/2").code == 0


def test_report_does_not_call_such_rows_verified(altered: Bench) -> None:
    assert_named(altered.run("report", "counts", "--verify", "--out", str(altered.root / "r.html")), REPAIR)
    assert altered.run("republish", "counts").code == 0
    answer = altered.run("report", "counts", "--verify", "--out", str(altered.root / "r.html"))
    assert answer.code == 0, answer.err


def test_why_names_the_table_and_not_the_code(altered: Bench) -> None:
    answer = altered.run("why", "alerts.totals", "ann")
    assert_named(answer, "does not give this row", REPAIR)
    assert "deterministic" not in answer.err
    assert altered.run("republish", "counts").code == 0
    assert altered.run("why", "alerts.totals", "ann").code == 0


def test_diff_does_not_compare_such_rows(bench: Bench) -> None:
    assert bench.run("backfill", "counts", "--from", "2", "--branch", "fix").code == 0
    compared = [("diff", "counts", "main", "fix"), ("diff", "counts", "fix", "main")]
    report = ("report", "counts", "--diff", "fix", "--out", str(bench.root / "r.html"))
    assert [bench.run(*words).code for words in (*compared, report)] == [0, 0, 0]
    totals(bench).update({"value": "value + 1"})
    for words in (*compared, report):
        assert_named(bench.run(*words), REPAIR)
    with refused("table-altered"):
        Project.load(bench.root).diff("counts", "fix")
    assert bench.run("republish", "counts").code == 0
    totals(bench).optimize.compact()
    assert [bench.run(*words).code for words in (*compared, report)] == [0, 0, 0]


def test_diff_names_the_branch_whose_table_is_altered_or_gone(bench: Bench) -> None:
    assert bench.run("backfill", "counts", "--from", "2", "--branch", "fix").code == 0
    path = bench.warehouse / "alerts/totals__fix"
    for harm in (lambda: DeltaTable(path).update({"value": "value + 1"}), lambda: DeltaTable(path).delete()):
        harm()
        answer = bench.run("diff", "counts", "main", "fix")
        assert (answer.code, "`rewindow republish counts --branch fix`" in answer.err) == (74, True), answer
        assert bench.run("republish", "counts", "--branch", "fix").code == 0
        assert bench.run("diff", "counts", "main", "fix").code == 0


def test_branches_that_ended_are_still_compared(bench: Bench) -> None:
    for name in ("fix", "other"):
        assert bench.run("backfill", "counts", "--from", "2", "--branch", name).code == 0
    assert bench.run("branch", "drop", "counts", "other").code == 0
    assert bench.run("diff", "counts", "main", "other").code == 0
    assert bench.run("promote", "counts", "fix").code == 0
    assert bench.run("gc", "counts", "--keep", "0s").code == 0
    assert bench.run("diff", "counts", "main", "fix").code == 0
    assert bench.run("diff", "counts", "main", "other").code == 2


@pytest.mark.parametrize("missing", [(), ("--missing",)])
def test_why_a_row_of_a_changed_key_is_gone(bench: Bench, missing: tuple[str, ...]) -> None:
    totals(bench).update({"user": "'zed'"}, predicate="user = 'ann'")
    assert_named(bench.run("why", "alerts.totals", "ann", *missing), REPAIR)
    assert bench.run("republish", "counts").code == 0
    assert bench.run("why", "alerts.totals", "ann", *missing).code == 0


def test_why_a_row_is_missing_from_a_compacted_table(bench: Bench) -> None:
    totals(bench).optimize.compact()
    answer = bench.run("why", "alerts.totals", "zoe", "--missing")
    assert (answer.code, "no record of the key was ever landed" in answer.out) == (0, True)


def test_the_table_of_a_branch_is_named_with_its_branch(bench: Bench) -> None:
    assert bench.run("backfill", "counts", "--from", "2", "--branch", "fix").code == 0
    (path,) = [path for path in bench.warehouse.rglob("*totals*fix*") if (path / "_delta_log").is_dir()]
    DeltaTable(path).update({"value": "value + 1"})
    answer = bench.run("verify", "counts", "--branch", "fix")
    assert answer.code == 74, answer
    assert "[table-altered]" in answer.err
    assert "counts --branch fix" in answer.err
    assert bench.run("republish", "counts", "--branch", "fix").code == 0
    assert bench.run("verify", "counts", "--branch", "fix").code == 0


def test_a_table_that_was_only_compacted_is_as_it_was_published(bench: Bench) -> None:
    totals(bench).optimize.compact()
    assert bench.run("verify", "counts", "main/1", "main/2").code == 0
    totals(bench).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert bench.run("verify", "counts", "main/1", "main/2").code == 0


def test_what_was_staged_is_not_needed_to_find_other_rows(altered: Bench) -> None:
    totals(altered).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert_named(altered.run("verify", "counts", "main/1", "main/2"), "what the run had staged is gone", REPAIR)
    assert_named(altered.run("why", "alerts.totals", "ann"), REPAIR)
    answer = altered.run("republish", "counts")
    assert answer.code == 0, answer.err
    assert altered.run("verify", "counts", "main/1", "main/2").code == 0
