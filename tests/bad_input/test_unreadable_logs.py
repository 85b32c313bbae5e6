"""A commit of a Delta log was cut short or emptied, as by a crash of the machine: the message names a way out that works."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.bad_input.files import HARMS, Harm
from tests.bad_input.scene import FRESH, Bench, copy_of, goes_on, hour, make_template

pytestmark = pytest.mark.usefixtures("in_process")

READERS = (("land", "activity"), ("run", "counts"), ("show", "counts"), ("verify", "counts"), ("republish", "counts"))
BROKEN = [pytest.param(HARMS[how], id=how) for how in ("that is cut short", "that is empty")]
TABLES = ("logs/activity/events", "alerts/totals", "state/counts/sums/*", "rewindow/metrics", "rewindow/quarantine")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = make_template(tmp_path_factory.mktemp("template") / "bench")
    bench.edit("conf/feeds/activity.yaml", "arrived_at: got}", "arrived_at: got, invalid_timestamp: skip}")
    bench.rows("bad", [{**row, "t": None} for row in hour(FRESH)[:2]])
    goes_on(bench)  # so that no command has anything to do
    return bench


def log_of(bench: Bench, table: str) -> Path:
    (folder,) = bench.warehouse.glob(f"{table}/_delta_log")
    return folder


def newest(bench: Bench, table: str) -> Path:
    return max(log_of(bench, table).glob("*.json"))


def told(bench: Bench) -> list[str]:
    """Return what commands say that fail because of the log."""
    answers = [bench.run(*words) for words in READERS]
    assert {answer.code for answer in answers} <= {0, 74}, answers
    return [answer.err for answer in answers if answer.code == 74]


@pytest.mark.parametrize("harm", BROKEN)
@pytest.mark.parametrize("table", TABLES)
def test_without_a_copy_the_log_is_removed_and_the_named_command_publishes_again(
    bench: Bench, template: Bench, table: str, harm: Harm
) -> None:
    harm([newest(bench, table)])
    said = told(bench)
    assert said, "no command reads this log"
    for text in said:
        assert "Without one, " in text, text
        assert "remove the folder _delta_log and nothing else, and call `rewindow" in text, text
    shutil.rmtree(log_of(bench, table))
    for words in map(shlex.split, re.findall(r"`rewindow (\w+[^`]*)`", said[0].partition("and call ")[2])):
        name = "activity" if words[0] == "land" else "counts"
        answer = bench.run(words[0], name)
        assert answer.code == 0, answer.err
    assert told(bench) == []
    assert (bench.result(), bench.quarantined()) == (template.result(), template.quarantined())
    assert bench.quarantined()


@pytest.mark.parametrize("harm", BROKEN)
@pytest.mark.parametrize(("table", "words"), [("runs", ("run", "counts")), ("landings", ("land", "activity"))])
def test_a_ledger_is_not_to_be_removed_and_what_it_lost_is_told(
    bench: Bench, table: str, words: tuple[str, str], harm: Harm
) -> None:
    commit = newest(bench, f"rewindow/{table}")
    harm([commit])
    answer = bench.run(*words)
    assert answer.code == 74
    assert "remove its newest commit if only that one is broken" in answer.err
    assert "Keep the table, which is the ledger of all" in answer.err
    commit.unlink()
    answer = bench.run(*words)
    assert answer.code == 76
    assert "an older copy of the ledger was restored" in answer.err


def test_a_first_landing_that_the_ledger_has_lost_is_not_deleted(template: Bench, tmp_path: Path) -> None:
    bench = copy_of(template, tmp_path / "first")
    shutil.rmtree(bench.warehouse)
    assert bench.run("land", "activity").code == 0
    files = {path.relative_to(bench.warehouse) for path in bench.warehouse.rglob("logs/**/*.parquet")}
    commits = sorted(log_of(bench, "rewindow/landings").glob("*.json"))
    commits[-1].unlink()
    answer = bench.run("land", "activity")
    assert answer.code == 76
    assert "has files of a landing that its ledger does not know" in answer.err
    assert "give the feed another name" in answer.err
    assert {path.relative_to(bench.warehouse) for path in bench.warehouse.rglob("logs/**/*.parquet")} >= files
