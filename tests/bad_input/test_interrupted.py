"""A command that died after its decision is called again from the command line. `tests/tables` does so to every command."""

from __future__ import annotations

import pytest

from rewindow.app.watch import Watch
from tests.bad_input.scene import Bench


class KilledError(BaseException):
    """Ends a command as a kill does: nothing handles it."""


def killed_before(bench: Bench, step: str, *words: str) -> None:
    """Run a command that is killed before the first step with this name after its decision."""
    decided = False

    def dying(_watch: Watch, name: str) -> None:
        nonlocal decided
        if decided and name.startswith(step):
            raise KilledError
        decided = decided or name in {"decide", "commit"}

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Watch, "__call__", dying)
        with pytest.raises(KilledError):
            bench.run(*words)


def branches(bench: Bench) -> list[str]:
    """Return the names of the branches that backfills have named."""
    listed = bench.json("branch list counts")["branches"]
    return [one["branch"] for one in listed if one["branch"].startswith("backfill-")]


def test_show_and_plan_report_tables_behind_the_ledger_until_the_same_rewind_is_called_again(bench: Bench) -> None:
    killed_before(bench, "publish", "rewind", "counts", "--to", "1")
    for line in ("show counts", "plan counts"):
        assert bench.json(line)["lagging"] == {"output/totals": 1}
    assert bench.json("rewind counts --to 1")["lagged"] == ["output/totals"]
    assert bench.json("show counts")["lagging"] == {}
    assert bench.json("rewind counts --to 1")["lagged"] == []


def test_the_same_backfill_without_a_name_continues_on_its_branch(bench: Bench) -> None:
    killed_before(bench, "plan", "backfill", "counts", "--from", "1")
    bench.done("backfill counts --from 1")
    assert len(branches(bench)) == 1
    bench.done("backfill counts --from 1")
    assert len(branches(bench)) == 2


def test_republish_says_what_an_interrupted_command_had_left(bench: Bench) -> None:
    killed_before(bench, "publish", "rewind", "counts", "--to", "1")
    assert bench.json("republish counts")["lagged"] == ["output/totals"]
    assert not any(bench.json("republish counts").values())
