"""A feed of another job's output takes only the rows that were published: rows altered by another writer are refused (74)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from rewindow.tables.delta.commit import table_path
from rewindow.tables.delta.table_rows import read_rows
from tests.bad_input.chain import reads_totals
from tests.bad_input.scene import Bench, copy_of, goes_on


def _again(table: DeltaTable) -> None:
    write_deltalake(table, table.to_pyarrow_table(), mode="append")


ALTERATIONS: dict[str, tuple[Callable[[DeltaTable], object], str]] = {
    "some rows are deleted": (lambda table: table.delete("user = 'ann' and _run = 5"), "were published"),
    "all new rows are deleted": (lambda table: table.delete("_run = 5"), "were published"),
    "rows are updated": (
        lambda table: table.update(predicate="_run = 5", updates={"value": "value + 1"}),
        "has other rows of run main/3",
    ),
    "rows are added": (_again, "were published"),
}


@pytest.fixture
def chained(template: Bench, tmp_path: Path) -> Bench:
    """Return a project with a feed that has landed two runs of `counts` and not the third."""
    bench = copy_of(template, tmp_path / "project")
    reads_totals(bench)
    assert bench.run("land", "totals").code == 0
    goes_on(bench)
    return bench


def totals(bench: Bench) -> DeltaTable:
    """Return the output table."""
    return DeltaTable(table_path(str(bench.warehouse), "alerts/totals"))


def landed(bench: Bench) -> int:
    """Return how many rows the feed has landed."""
    return int(read_rows(table_path(str(bench.warehouse), "logs/totals/totals")).num_rows)


@pytest.mark.parametrize("name", ALTERATIONS)
def test_altered_rows_are_not_landed(chained: Bench, name: str) -> None:
    alter, says = ALTERATIONS[name]
    before = landed(chained)
    alter(totals(chained))
    refused = chained.run("land", "totals")
    assert refused.code == 74, refused
    assert says in refused.err, refused
    assert "`rewindow republish counts`" in refused.err
    listed = json.loads(chained.run("ls", "--json").out)["feeds"]
    assert [one["status"] for one in listed if one["feed"] == "totals"] == ["broken"]
    assert landed(chained) == before
    assert chained.run("republish", "counts").code == 0
    assert chained.run("land", "totals").code == 0
    assert landed(chained) == read_rows(table_path(str(chained.warehouse), "alerts/totals")).num_rows > before


def test_altered_rows_that_are_landed_do_not_stop_a_landing(chained: Bench) -> None:
    totals(chained).delete("_run < 5")
    assert chained.run("land", "totals").code == 0


def test_a_rewritten_table_with_the_same_rows_is_landed(chained: Bench) -> None:
    totals(chained).optimize.compact()
    assert chained.run("land", "totals").code == 0
    assert landed(chained) == read_rows(table_path(str(chained.warehouse), "alerts/totals")).num_rows
