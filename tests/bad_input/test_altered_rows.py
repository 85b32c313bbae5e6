"""Another writer replaces rows of an output by as many others: `verify`, `diff`, `report` and `why` name the table (74)."""

from __future__ import annotations

from deltalake import DeltaTable

from rewindow.app.api.project import Project
from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import FRESH, Bench, hour
from tests.refusals import containing, fixes, refused

REPAIR = "republish counts"


def totals(bench: Bench) -> DeltaTable:
    return DeltaTable(bench.warehouse / "alerts/totals")


def alter(bench: Bench) -> None:
    """Give all rows of the output another value."""
    totals(bench).update({"value": "value + 1"})


def test_each_command_that_relies_on_the_rows_names_the_table_until_it_is_repaired(bench: Bench) -> None:
    bench.done("backfill counts --from 2 --branch fix")
    page = bench.root / "r.html"
    lines = (
        "verify counts main/1 main/2",
        f"report counts --verify --out {page}",
        "why alerts.totals ann",
        "diff counts main fix",
        "diff counts fix main",
        f"report counts --diff fix --out {page}",
    )
    alter(bench)
    for line in lines:
        refusal = bench.refuses(line, "row-altered-since-published" if line.startswith("why") else "table-altered")
        assert fixes(refusal) == [REPAIR], line
    with refused("table-altered"):
        Project.load(bench.root).diff("counts", "fix")
    bench.done("republish counts")
    bench.done(lines[0], lines[3])


def test_the_table_of_a_branch_is_named_with_its_branch(bench: Bench) -> None:
    bench.done("backfill counts --from 2 --branch fix")
    path = bench.warehouse / "alerts/totals__fix"
    DeltaTable(path).update({"value": "value + 1"})
    for line in ("diff counts main fix", "verify counts --branch fix"):
        assert fixes(bench.refuses(line, "table-altered")) == [f"{REPAIR} --branch fix"]
    bench.done(f"{REPAIR} --branch fix", "diff counts main fix")


def test_the_state_of_a_branch_is_repaired_by_the_command_that_is_named(bench: Bench) -> None:
    before = set((bench.warehouse / "state").rglob("*.parquet"))
    bench.done("backfill counts --from 2 --branch fix")
    for file in {*(bench.warehouse / "state").rglob("*.parquet")} - before:
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    bench.rows("later", hour(FRESH + 1))
    bench.done("land activity")
    refusal = bench.refuses("run counts --branch fix", "checkpoint-file-unreadable")
    assert fixes(refusal) == [f"{REPAIR} --branch fix"]
    bench.done(f"{REPAIR} --branch fix", "run counts --branch fix", "verify counts --branch fix")


def test_rows_of_a_branch_that_are_missing_are_published_again_by_the_command_that_is_named(bench: Bench) -> None:
    bench.done("backfill counts --from 2 --branch fix")
    tables = DeltaTables(str(bench.warehouse))
    run = tables.state("counts").branch("fix").runs[-1]
    for file in (bench.warehouse / "alerts/totals__fix").glob("*.parquet"):
        file.unlink()
    DeltaTable(bench.warehouse / "alerts/totals__fix").delete()
    with refused("published-rows-missing") as caught:
        list(tables.run_batches(run, "output/totals", ["user"]))
    assert fixes(caught.value) == [f"{REPAIR} --branch fix"]
    bench.done(f"{REPAIR} --branch fix")
    assert list(tables.run_batches(run, "output/totals", ["user"]))


def test_branches_that_ended_are_still_compared(bench: Bench) -> None:
    bench.done("backfill counts --from 2 --branch fix", "backfill counts --from 2 --branch other")
    bench.done("branch drop counts other", "diff counts main other")
    bench.done("promote counts fix", "gc counts --keep 0s", "diff counts main fix")
    bench.refuses("diff counts main other", "branch-dropped")


def test_why_a_row_of_a_changed_key_is_gone(bench: Bench) -> None:
    totals(bench).update({"user": "'zed'"}, predicate="user = 'ann'")
    for more in ("", " --missing"):
        assert fixes(bench.refuses(f"why alerts.totals ann{more}", "why-table-altered")) == [REPAIR]
    bench.done("republish counts", "why alerts.totals ann", "why alerts.totals ann --missing")


def test_a_table_that_was_only_compacted_is_as_it_was_published(bench: Bench) -> None:
    totals(bench).optimize.compact()
    bench.done("verify counts main/1 main/2")
    found = bench.json("why alerts.totals zoe --missing")
    assert found["why"] == "never_landed"
    totals(bench).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    bench.done("verify counts main/1 main/2")


def test_what_was_staged_is_not_needed_to_find_other_rows(bench: Bench) -> None:
    alter(bench)
    totals(bench).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    bench.refuses("verify counts main/1 main/2", "table-altered", tables=containing("staged"))
    assert fixes(bench.refuses("why alerts.totals ann", "row-altered-since-published")) == [REPAIR]
    bench.done(REPAIR, "verify counts main/1 main/2")
