"""A command that died after its decision is called again from the command line: what it says, its exit code, the tables."""

from __future__ import annotations

import json

import pytest

from rewindow.app.watch import Watch
from tests.bad_input.scene import Answer, Bench


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


def ok(bench: Bench, *words: str) -> Answer:
    answer = bench.run(*words)
    assert answer.code == 0, answer.err
    return answer


LAG = "Tables lag behind the ledger: output/totals by 1 commit."


def test_show_and_plan_report_tables_behind_the_ledger_until_the_same_rewind_is_called_again(bench: Bench) -> None:
    killed_before(bench, "publish", "rewind", "counts", "--to", "1")
    assert (
        f"{LAG} The next command on the job, such as `rewindow run counts`, publishes them."
        in ok(bench, "show", "counts").out
    )
    assert f"{LAG} The next run publishes them." in ok(bench, "plan", "counts").out
    assert json.loads(ok(bench, "plan", "counts", "--json").out)["lagging"] == {"output/totals": 1}
    again = ok(bench, "rewind", "counts", "--to", "1").out
    assert again.splitlines() == [
        "Branch main of counts is at main/1 already: nothing to rewind.",
        "Published what output/totals lacked.",
    ]
    assert "lag" not in ok(bench, "show", "counts").out
    third = ok(bench, "rewind", "counts", "--to", "1").out
    assert third == "Branch main of counts is at main/1 already: nothing to rewind.\n"


def test_the_same_promotion_called_again_publishes_and_says_so(bench: Bench) -> None:
    ok(bench, "backfill", "counts", "--from", "1", "--branch", "fix")
    killed_before(bench, "publish", "promote", "counts", "fix")
    assert json.loads(ok(bench, "show", "counts", "--json").out)["lagging"] == {"output/totals": 1}
    assert "is part of main already, which is at fix/1" in ok(bench, "promote", "counts", "fix").out
    assert json.loads(ok(bench, "show", "counts", "--json").out)["lagging"] == {}
    ok(bench, "land", "activity")
    ok(bench, "run", "counts")  # main goes on: the promotion stays done, and catches nothing up
    assert json.loads(ok(bench, "promote", "counts", "fix", "--json").out)["is_new"] is False


def test_the_same_backfill_without_a_name_continues_on_its_branch(bench: Bench) -> None:
    killed_before(bench, "plan", "backfill", "counts", "--from", "1")
    ok(bench, "backfill", "counts", "--from", "1")
    branches = json.loads(ok(bench, "branch", "list", "counts", "--json").out)["branches"]
    assert len([one for one in branches if one["branch"].startswith("backfill-")]) == 1
    ok(bench, "backfill", "counts", "--from", "1")
    branches = json.loads(ok(bench, "branch", "list", "counts", "--json").out)["branches"]
    assert len([one for one in branches if one["branch"].startswith("backfill-")]) == 2


def test_the_same_drop_called_again_ends_well(bench: Bench) -> None:
    ok(bench, "backfill", "counts", "--from", "1", "--branch", "fix")
    for _ in range(2):
        assert ok(bench, "branch", "drop", "counts", "fix").out == "Dropped branch fix of counts.\n"
    assert bench.run("branch", "drop", "counts", "fx").code == 2


def test_the_same_new_generation_called_again_is_not_started_twice(bench: Bench) -> None:
    killed_before(bench, "publish events", "land", "activity", "--new-generation")
    again = ok(bench, "land", "activity", "--new-generation").out
    assert "An interrupted call had started generation 2, which is now published." in again
    assert json.loads(ok(bench, "land", "activity", "--json").out)["generation"] == 2


def test_republish_says_what_an_interrupted_command_had_left(bench: Bench) -> None:
    killed_before(bench, "publish", "rewind", "counts", "--to", "1")
    said = ok(bench, "republish", "counts").out
    assert said == "Published what output/totals lacked.\n"
    assert ok(bench, "republish", "counts").out == "The tables of counts are intact.\n"
