"""Tables that the present code or log cannot make again: the message names what repairs them. `diff` says what it compared."""

from __future__ import annotations

import io
import shutil

import pytest

from rewindow.errors import one_line
from tests.bad_input.scene import FRESH, SCORE, Bench, copy_of, hour
from tests.refusals import fixes

OUT = "alerts/totals"
AGAIN = ("rewind counts --to 0", "run counts")


@pytest.fixture(scope="module")
def new_generation(template: Bench, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the output's content after the feed is landed again and the job has replayed it."""
    bench = copy_of(template, tmp_path_factory.mktemp("generation") / "project")
    bench.done("land activity --new-generation", *AGAIN)
    return bench.result()["output/totals"]


def test_runs_of_two_versions_of_the_code_are_repeated_one_after_the_other(bench: Bench) -> None:
    earlier, later = SCORE.replace("* 2", "* 3"), SCORE.replace("* 2", "* 4")
    bench.code(earlier)
    bench.done("backfill counts --from 1 --branch fix", "promote counts fix")
    for number, code in (FRESH + 1, earlier), (FRESH + 2, later):
        bench.code(code)
        bench.rows(f"hour-{number}", hour(number))
        bench.done("land activity", "run counts")
    before = bench.result()
    shutil.rmtree(bench.warehouse / OUT)
    for code, named in (later, "main/3"), (earlier, "main/4"):
        bench.code(code)
        bench.refuses("republish counts", "replayed-code-differs", run=named)
    assert bench.run("run", "counts").code == 74
    bench.code(later)
    assert bench.done("republish counts").err == ""
    assert bench.result() == before


def test_a_branch_whose_files_are_gone_can_be_dropped_and_then_the_tables_are_repaired(bench: Bench) -> None:
    before = bench.result()
    bench.code(SCORE.replace("* 2", "* 3"))
    bench.done("backfill counts --from 1 --branch trial")
    bench.code(SCORE)
    shutil.rmtree(bench.warehouse / "state")
    (fix,) = fixes(bench.refuses("republish counts", "replayed-code-differs"))
    bench.done(fix, "republish counts", "run counts", "status")
    assert bench.result()["output/totals"] == before["output/totals"]


def test_a_log_that_is_gone_is_landed_again(bench: Bench, new_generation: str) -> None:
    shutil.rmtree(bench.warehouse / "logs")
    fix, *_ = fixes(bench.refuses("land activity", "staged-file-altered"))
    assert bench.run(*["land", "activity", "--new-generation", "--keep", "1"]).code == 74, "it would keep what is gone"
    report = bench.json(fix)
    assert (report["generation"], report["warning_codes"]) == (2, ["landed-files-replaced"])
    for line in (*AGAIN, "verify counts", "status"):
        bench.done(line)
    assert bench.json("land activity")["warning_codes"] == []
    assert bench.result()["output/totals"] == new_generation


def test_a_generation_after_a_lost_log_is_not_taken_for_one_that_was_interrupted(bench: Bench) -> None:
    shutil.rmtree(bench.warehouse / "logs")
    assert [bench.json("land activity --new-generation")["generation"] for _ in range(2)] == [2, 3]


def test_what_cannot_be_made_again_after_a_new_generation_starts_over(
    bench: Bench, new_generation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(bench.warehouse / "logs")
    bench.done("land activity --new-generation")
    shutil.rmtree(bench.warehouse / OUT)
    reset, run = fixes(bench.refuses("republish counts", "run-not-repeatable"))
    monkeypatch.setattr("sys.stdin", io.StringIO())  # nobody answers
    (confirmed,) = fixes(bench.refuses(reset, "reset-not-confirmed"))
    bench.done(confirmed, run, "status")
    assert bench.result()["output/totals"] == new_generation


def test_a_backtrace_of_native_code_is_not_shown() -> None:
    said = "Kernel error: Json error: unexpected 'b' whilst parsing object"
    assert one_line(f"{said}\n   0: <unknown>\n   1: start_thread\n at x.c:4") == said


def test_diff_says_what_it_compared(bench: Bench) -> None:
    assert bench.json("diff counts main main")["totals"]["epochs"] is None
    bench.done("backfill counts --from 2 --branch fix")
    assert bench.json("diff counts main fix")["totals"]["epochs"] == [2, 2]
