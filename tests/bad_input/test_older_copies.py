"""Some tables were restored from an older copy and have grown again: nobody takes a number for the landing or run it once was."""

from __future__ import annotations

import re
import shutil

import pytest

from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import read_rows
from tests.bad_input.chain import reads_totals
from tests.bad_input.scene import FRESH, Bench, copy_of, goes_on, hour

pytestmark = pytest.mark.usefixtures("in_process")

LANDED = ("logs", "rewindow/landings")
RAN = ("alerts", "state", "rewindow/runs", "rewindow/journal", "rewindow/metrics")


@pytest.fixture(scope="module")
def template(two_hours: Bench, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Three hours are landed and replayed; a copy is from before the third."""
    root = tmp_path_factory.mktemp("older")
    bench = copy_of(two_hours, root / "project")
    shutil.copytree(bench.warehouse, root / "project/older")
    goes_on(bench)
    return bench


def restore(bench: Bench, tables: tuple[str, ...]) -> None:
    """Replace some tables by their older copy."""
    for table in tables:
        shutil.rmtree(bench.warehouse / table)
        shutil.copytree(bench.root / "older" / table, bench.warehouse / table)


def rows(bench: Bench) -> str:
    return bench.result()["output/totals"]


@pytest.mark.parametrize("lands_again", [False, True])
def test_landings_of_an_older_copy_are_not_those_that_a_job_has_taken(bench: Bench, *, lands_again: bool) -> None:
    """The next landing gets the number of a lost one, with more rows. The job had taken the lost one."""
    restore(bench, LANDED)
    bench.rows("h3", hour(FRESH + 1))
    if lands_again:
        bench.done("land activity")
    for line in ("plan counts", "run counts", "verify counts"):
        refusal = bench.refuses(line, "run-input-missing")
    assert bench.findings("counts")[0].about == "refused"
    refusal = bench.refuses("run counts", "run-input-missing")
    bench.done(*re.findall(r"`rewindow (rewind [^`]+)`", refusal.message), "land activity", "run counts")
    bench.rows("h4", hour(FRESH + 2))
    goes_on(bench)
    found = rows(bench)
    bench.done("rewind counts --to 0", "run counts")
    assert rows(bench) == found


def test_runs_of_an_older_copy_are_not_those_that_a_feed_has_landed(bench: Bench) -> None:
    """The next run gets the number of the lost one."""
    reads_totals(bench)
    bench.done("land totals", "run seen")
    restore(bench, RAN)
    bench.done("run counts")
    refusal = bench.refuses("land totals", "landed-run-replaced")
    bench.done(*re.findall(r"`rewindow (land [^`]+)`", refusal.message))


def test_an_output_is_not_landed_from_a_run_whose_landings_are_gone(bench: Bench) -> None:
    """The watermarks of its epochs are gone with the landings."""
    reads_totals(bench)
    restore(bench, LANDED)
    refusal = bench.refuses("land totals", "run-input-missing")
    bench.done(*re.findall(r"`rewindow (rewind [^`]+)`", refusal.message), "land activity", "run counts", "land totals")
    found = rows(bench)
    bench.done("rewind counts --to 0", "run counts")
    assert rows(bench) == found


def test_republish_says_that_it_empties_an_output_from_before_a_reset(bench: Bench) -> None:
    bench.done("reset counts --yes")
    restore(bench, ("alerts",))
    assert bench.json("republish counts")["emptied"] == ["alerts/totals"]
    assert read_rows(table_path(str(bench.warehouse), "alerts/totals")).num_rows == 0
    assert bench.json("republish counts")["emptied"] == []


def test_a_run_of_replaced_landings_can_be_verified_after_what_verify_advises(bench: Bench) -> None:
    bench.done("land activity --new-generation")
    refusal = bench.refuses("verify counts", "run-input-missing")
    bench.done(*re.findall(r"`rewindow (rewind [^`]+)`", refusal.message), "run counts", "verify counts")
