"""OPTIMIZE and VACUUM by another program, with a retention of zero.

No command minds it in outputs, logs and the tables in `rewindow`. A store cannot be restored then, which `plan` and `status` say.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.bad_input.scene import Bench, copy_of, goes_on


def upkeep(warehouse: Path, pattern: str) -> int:
    """Compact tables and delete all files that they no longer name. Return the number of files deleted."""
    deleted = 0
    for log in warehouse.glob(f"{pattern}/_delta_log"):
        table = DeltaTable(log.parent)
        table.optimize.compact()
        deleted += len(table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False))
    return deleted


@pytest.mark.parametrize("lands", [True, False], ids=["a landing waits", "nothing waits"])
def test_state_that_vacuum_deleted_is_told_before_and_after_the_run_that_fails(bench: Bench, *, lands: bool) -> None:
    if lands:
        bench.done("land activity")
    assert upkeep(bench.warehouse, "**") > 0
    for command in ("plan", "run", "plan"):
        assert bench.run(command, "counts").code == (74 if lands else 0)
        finding = bench.findings("counts")[0]
        assert (finding.about, "`rewindow republish counts`" in finding.message) == (
            ("refused" if lands else "altered"),
            True,
        )
    bench.done("republish counts", "run counts")
    assert bench.findings("counts") == []


def test_state_that_was_lost_is_told_while_a_run_is_not_published_yet(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    bench.done("land activity")
    with monkeypatch.context() as patched:
        patched.setattr("rewindow.tables.delta.publish.commit_files", dies)
        assert bench.run("run", "counts").code == 130
    assert [one.about for one in bench.findings("counts")] == ["lagging"], "staged state is as good as published"
    (folder,) = (bench.warehouse / "state/counts/sums").iterdir()
    (staged,) = {*folder.glob("*.parquet")} - {Path(uri) for uri in DeltaTable(folder).file_uris()}
    staged.unlink()
    assert bench.run("run", "counts").code == 74
    assert "altered" in {one.about for one in bench.findings("counts")}


def test_outputs_logs_and_shared_tables_may_be_compacted_and_vacuumed_at_any_time(
    bench: Bench, template: Bench, tmp_path: Path
) -> None:
    tables = ("alerts/*", "logs/*/*", "rewindow/*")
    assert all(upkeep(bench.warehouse, pattern) for pattern in tables)
    goes_on(bench)
    assert all(upkeep(bench.warehouse, pattern) for pattern in tables)
    bench.done("status", "show counts", "verify counts")
    clean = copy_of(template, tmp_path / "clean")
    goes_on(clean)
    assert bench.result() == clean.result()
