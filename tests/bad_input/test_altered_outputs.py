"""A feed of another job's output takes only the rows that were published: rows altered by another writer are refused (74)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from tests.bad_input.chain import reads_totals
from tests.bad_input.scene import Bench, copy_of, goes_on


def _again(table: DeltaTable) -> None:
    write_deltalake(table, table.to_pyarrow_table(), mode="append")


ALTERATIONS: dict[str, tuple[Callable[[DeltaTable], object], str]] = {
    "some rows are deleted": (lambda table: table.delete("user = 'ann' and _run = 5"), "job-output-altered"),
    "rows are updated": (
        lambda table: table.update(predicate="_run = 5", updates={"value": "value + 1"}),
        "job-output-altered",
    ),
    "rows are added": (_again, "job-output-altered"),
}


@pytest.fixture(scope="module")
def chain(template: Bench) -> Bench:
    """Return a project with a feed that has landed two runs of `counts` and not the third."""
    reads_totals(template)
    template.done("land totals")
    goes_on(template)
    return template


@pytest.fixture
def chained(chain: Bench, tmp_path: Path) -> Bench:
    return copy_of(chain, tmp_path / "project")


def totals(bench: Bench) -> DeltaTable:
    """Return the output table."""
    return DeltaTable(table_path(str(bench.warehouse), "alerts/totals"))


def landed(bench: Bench) -> int:
    """Return how many rows the feed has landed."""
    return int(read_rows(table_path(str(bench.warehouse), "logs/totals/totals")).num_rows)


@pytest.mark.parametrize("name", ALTERATIONS)
def test_altered_rows_are_not_landed(chained: Bench, name: str) -> None:
    alter, code = ALTERATIONS[name]
    before = landed(chained)
    alter(totals(chained))
    refusal = chained.refuses("land totals", code)
    assert "`rewindow republish counts`" in refusal.message
    assert [one["status"] for one in chained.json("ls")["feeds"] if one["feed"] == "totals"] == ["broken"]
    assert landed(chained) == before
    chained.done("republish counts", "land totals")
    assert landed(chained) == totals(chained).to_pyarrow_table().num_rows > before


def test_rows_that_are_landed_already_or_only_rewritten_do_not_stop_a_landing(chained: Bench) -> None:
    totals(chained).delete("_run < 5")
    totals(chained).optimize.compact()
    chained.done("land totals")
