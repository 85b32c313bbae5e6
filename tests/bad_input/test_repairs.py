"""Each message about damaged tables names a command, and that command repairs them; `diff` says what it compared."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rewindow.errors import one_line
from rewindow.tables.delta import handle
from tests.bad_input.scene import FRESH, SCORE, Answer, Bench, copy_of, hour

OUT, JOURNAL, METRICS = "alerts/totals", "rewindow/journal", "rewindow/metrics"


def first(folder: Path) -> Path:
    return min(folder.rglob("*.parquet"))


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))


HARMS: dict[str, Callable[[Path], object]] = {
    "output gone": lambda tables: shutil.rmtree(tables / OUT),
    "output deleted from": lambda tables: DeltaTable(tables / OUT).delete(),
    "output restored": lambda tables: DeltaTable(tables / OUT).restore(1),
    "store file gone": lambda tables: first(tables / "state").unlink(),
    "store files altered": lambda tables: [flip(file) for file in (tables / "state").rglob("*.parquet")],
    "stores gone": lambda tables: shutil.rmtree(tables / "state"),
    "metrics gone": lambda tables: shutil.rmtree(tables / METRICS),
    "journal gone": lambda tables: shutil.rmtree(tables / JOURNAL),
    "journal file gone": lambda tables: first(tables / JOURNAL).unlink(),
    "journal file altered": lambda tables: flip(first(tables / JOURNAL)),
}


def call(bench: Bench, *words: str) -> Answer:
    """Run a command as a new process does: it has opened no table before."""
    handle.cached.clear()
    return bench.run(*words)


COMMANDS = (("land", "activity"), ("show", "counts"), ("run", "counts"), ("verify", "counts", "main/1", "main/2"))


@pytest.mark.parametrize("harm", HARMS)
def test_the_command_that_a_message_names_repairs_the_tables(template: Bench, tmp_path: Path, harm: str) -> None:
    clean = copy_of(template, tmp_path / "clean")
    assert [call(clean, *words).code for words in COMMANDS] == [0, 0, 0, 0]
    bench = copy_of(template, tmp_path / "project")
    HARMS[harm](bench.warehouse)
    said = [answer.err for words in COMMANDS if (answer := call(bench, *words)).code == 74]
    assert said, "nothing noticed the harm"
    named = {command for text in said for command in re.findall(r"`rewindow ([^`]+)`", text)}
    assert named == {"republish counts"}
    assert call(bench, "republish", "counts").code == 0
    assert [call(bench, *words).code for words in COMMANDS] == [0, 0, 0, 0]
    assert bench.result() == clean.result()


def test_runs_of_two_versions_of_the_code_are_repeated_one_after_the_other(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    earlier, later = SCORE.replace("* 2", "* 3"), SCORE.replace("* 2", "* 4")
    bench.code(earlier)
    assert call(bench, "backfill", "counts", "--from", "1", "--branch", "fix").code == 0
    assert call(bench, "promote", "counts", "fix").code == 0
    for number, code in (FRESH + 1, earlier), (FRESH + 2, later):
        bench.code(code)
        bench.rows(f"hour-{number}", hour(number))
        assert [call(bench, *words).code for words in COMMANDS[:3]] == [0, 0, 0]
    before = bench.result()
    shutil.rmtree(bench.warehouse / OUT)
    for code, named in (later, "main/3"), (earlier, "main/4"):
        bench.code(code)
        refused = call(bench, "republish", "counts")
        assert refused.code == 76
        assert f"run {named} must be replayed, but was made by different code" in refused.err
        assert (call(bench, "plan", "counts").code, call(bench, "run", "counts").code) == (74, 74)
    bench.code(later)
    repaired = call(bench, "republish", "counts")
    assert (repaired.code, repaired.err) == (0, "")
    assert "and what run main/1 had staged is gone" in repaired.out
    assert bench.result() == before


def test_a_branch_whose_files_are_gone_can_be_dropped_and_then_the_tables_are_repaired(
    template: Bench, tmp_path: Path
) -> None:
    bench = copy_of(template, tmp_path / "project")
    before = bench.result()
    bench.code(SCORE.replace("* 2", "* 3"))
    assert call(bench, "backfill", "counts", "--from", "1", "--branch", "trial").code == 0
    bench.code(SCORE)
    shutil.rmtree(bench.warehouse / "state")
    refused = call(bench, "republish", "counts")
    assert refused.code == 76
    assert "or drop its branch, if nobody needs it any more: `rewindow branch drop counts trial`" in refused.err
    for words in ("branch", "drop", "counts", "trial"), ("republish", "counts"), ("run", "counts"), ("status",):
        answer = call(bench, *words)
        assert (words, answer.code) == (words, 0), answer.err
    assert bench.result()["output/totals"] == before["output/totals"]


AGAIN = ("rewind", "counts", "--to", "0"), ("run", "counts")


def new_generation(template: Bench, folder: Path) -> str:
    """Return the output's content after the feed is landed again and the job has replayed it."""
    bench = copy_of(template, folder)
    assert [call(bench, *words).code for words in (("land", "activity", "--new-generation"), *AGAIN)] == [0, 0, 0]
    return bench.result()["output/totals"]


def test_a_log_that_is_gone_is_landed_again(template: Bench, tmp_path: Path) -> None:
    expected = new_generation(template, tmp_path / "clean")
    bench = copy_of(template, tmp_path / "project")
    shutil.rmtree(bench.warehouse / "logs")
    answer = call(bench, "land", "activity")
    assert (answer.code, "[staged-file-altered]" in answer.err) == (74, True)
    assert "Only a copy of the warehouse has what was landed" in answer.err
    assert "[staged-file-altered]" in answer.err
    assert "Without a copy, land the source again, `rewindow land activity --new-generation`" in answer.err
    assert call(bench, "land", "activity", "--new-generation", "--keep", "1").code == 74  # it would keep what is gone
    again = call(bench, "land", "activity", "--new-generation")
    assert (again.code, "files of earlier landings are gone" in again.err) == (0, True), again.err
    for words in (*AGAIN, ("verify", "counts"), ("status",), ("land", "activity")):
        answer = call(bench, *words)
        assert (words, answer.code, "gone" in answer.err) == (words, 0, False), answer.err
    assert bench.result()["output/totals"] == expected
    bench.rows("hour9", hour(9))
    assert "landing 2" in call(bench, "land", "activity").out


def test_a_generation_after_a_lost_log_is_not_taken_for_one_that_was_interrupted(
    template: Bench, tmp_path: Path
) -> None:
    bench = copy_of(template, tmp_path / "project")
    shutil.rmtree(bench.warehouse / "logs")
    for generation in (2, 3):
        answer = call(bench, "land", "activity", "--new-generation", "--json")
        assert (answer.code, json.loads(answer.out)["generation"]) == (0, generation), answer.err


@pytest.mark.parametrize("lost", [[OUT], [OUT, "logs"]])
def test_what_cannot_be_made_again_after_a_new_generation_starts_over(
    template: Bench, tmp_path: Path, lost: list[str]
) -> None:
    expected = new_generation(template, tmp_path / "clean")
    bench = copy_of(template, tmp_path / "project")
    for name in lost[1:]:
        shutil.rmtree(bench.warehouse / name)
    assert call(bench, "land", "activity", "--new-generation").code == 0
    shutil.rmtree(bench.warehouse / lost[0])
    assert "`rewindow republish counts`" in call(bench, "run", "counts").err
    answer = call(bench, "republish", "counts")
    assert (answer.code, "[run-not-repeatable]" in answer.err) == (66, True)
    advice = re.findall(r"`rewindow ([^`]*)`", answer.err)
    assert advice == ["reset counts", "run counts"]
    for words in ("reset", "counts", "--yes"), ("run", "counts"), ("status",):
        assert (words, call(bench, *words).code) == (words, 0)
    assert bench.result()["output/totals"] == expected


def test_a_backtrace_of_native_code_is_not_shown() -> None:
    said = (
        "Kernel error: Json error: unexpected 'b' whilst parsing object\n   0: <unknown>\n   1: start_thread\n at x.c:4"
    )
    assert one_line(said) == "Kernel error: Json error: unexpected 'b' whilst parsing object"


def test_diff_says_what_it_compared(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "project")
    itself = call(bench, "diff", "counts", "main", "main")
    assert itself.code == 0
    assert itself.out == (
        "Nothing to compare: main and main share no epoch that they replayed separately. "
        "Both have every run through main/2.\n"
    )
    assert call(bench, "backfill", "counts", "--from", "2", "--branch", "fix").code == 0
    other = call(bench, "diff", "counts", "main", "fix").out
    assert other.startswith(
        "Compared epochs 2 to 2, which main and fix replayed separately. Both have every run through main/1.\n"
    )
