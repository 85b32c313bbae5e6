"""Data, names and exceptions of user code neither steer a terminal nor forge a line of output or of a log."""

from __future__ import annotations

import io
import json
import logging
import pickle
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from rewindow.airflow.process import Command
from rewindow.app.api.calls import _log
from rewindow.app.cli.printing import Printer
from rewindow.app.command_log import command_log, configure_logs
from rewindow.app.failures import failure_of
from rewindow.errors import ConfigError, HintMessage, Lines, RewindowError, visible_lines
from tests.bad_input.scene import FRESH, Bench, hour

FORGED = "rewindow: forged"
HOSTILE = f"a\x1b]0;t\x07\x9b31m\x7f\u202eb\u2066\u061c\u2028c\x85\r\n{FORGED}\tz"
UNPRINTABLE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def is_safe(text: str) -> bool:
    return not UNPRINTABLE.search(text) and not any(line.startswith(FORGED) for line in text.splitlines())


@pytest.fixture(autouse=True)
def _logs_nothing_afterwards() -> Iterator[None]:
    yield
    configure_logs(None)


def test_a_message_shows_what_is_unprintable_in_its_facts_and_keeps_the_facts() -> None:
    error = ConfigError("c", "{given} and {given!r}:\n{more}", given=HOSTILE, more=Lines([HOSTILE, "second"]))
    assert is_safe(str(error))
    assert str(error).count("\n") == 2  # the line break of the wording and that between the lines
    assert error.facts["given"] == HOSTILE
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - made here
    assert is_safe(str(error.surrounded(HOSTILE.partition("\r")[0], "\nmore")))


def test_a_message_within_a_message_keeps_its_lines() -> None:
    inner = HintMessage("c", "one\n{given}", given=HOSTILE)
    assert str(HintMessage("d", "{inner}.", inner=inner)) == f"{inner}."
    assert pickle.loads(pickle.dumps(inner)) == inner  # noqa: S301 - made here
    lines = Lines(["", "x"])
    assert (str(lines), pickle.loads(pickle.dumps(lines))) == ("\nx", "\nx")  # noqa: S301 - made here


def test_every_method_of_the_printer_is_safe(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer()
    printer.say(HOSTILE)
    printer.table(HOSTILE, [{HOSTILE: HOSTILE}])
    printer.listed("rows", [{"x": HOSTILE}])
    error = ValueError(HOSTILE)
    error.add_note(HOSTILE)
    printer.failed(failure_of(RewindowError("c", "{reason}", reason=error)), error)
    with printer.progress() as watch:
        watch.say(HOSTILE)
    shown = capsys.readouterr()
    assert is_safe(shown.out)
    assert is_safe(shown.err)
    assert "ValueError: a" in shown.err


def test_a_word_between_colons_is_no_picture(capsys: pytest.CaptureFixture[str]) -> None:
    Printer().say("key :warning: [red]x[/red]")
    assert capsys.readouterr().out == "key :warning: [red]x[/red]\n"


def test_json_has_printable_characters_only(capsys: pytest.CaptureFixture[str]) -> None:
    Printer(as_json=True).result({HOSTILE: [HOSTILE]}, ())
    printed = capsys.readouterr().out
    assert is_safe(printed)
    assert json.loads(printed) == {HOSTILE: [HOSTILE]}


@pytest.mark.parametrize("kind", ["json", "text"])
def test_an_event_is_one_line_of_the_log(kind: str) -> None:
    with redirect_stderr(io.StringIO()) as stream:
        configure_logs(kind)
        command_log().info(HOSTILE, key=HOSTILE)
    assert is_safe(stream.getvalue())
    assert stream.getvalue().count("\n") == 1
    if kind == "json":
        assert json.loads(stream.getvalue())["key"] == HOSTILE


def test_an_event_is_one_line_of_a_notebooks_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "rewindow"):
        _log().info("step", key=HOSTILE)
    (message,) = caplog.messages
    assert is_safe(message)
    assert "\n" not in message


def test_what_a_job_prints_is_escaped_in_the_log_of_a_task() -> None:
    said: list[str] = []
    code = f"import sys; sys.stderr.write({HOSTILE!r}); sys.stderr.write('\\n\\tat line 3\\n\\xff')"
    with Command([sys.executable, "-c", code]) as command:
        assert command.wait(said.append, poll_s=0.05) == 0
    assert is_safe("".join(said))
    assert [line.strip() for line in said[2:]] == ["at line 3", "\u00ff"]


def test_commands_show_hostile_data_in_one_line(bench: Bench) -> None:
    bench.code(f"def score(row):\n    if row.user != 'ann':\n        raise ValueError({HOSTILE!r})\n    return row.x\n")
    bench.rows("x\u202e\x1b[2J.parquet", hour(FRESH))
    rows = [{**row, "user": HOSTILE} for row in hour(FRESH + 1)]
    bench.rows("y.parquet", rows)
    bench.edit("conf/jobs/counts.yaml", "table: alerts.totals}", "table: alerts.totals, expect: [{not_null: user}]}")
    for line in ("land activity", "run counts", "run counts --log-format text", "run counts --debug", "ls", "status"):
        answer = bench.run(*line.split())
        assert is_safe(answer.out + answer.err), line
    bench.code(f"def score(row):\n    return {HOSTILE!r}\n")
    bench.done("run counts --accept-changes")
    for line in (
        "head counts",
        "why counts ann",
        "show counts",
        f"report counts --out {bench.root}/r.html",
        "status",
        "explain counts",
    ):
        answer = bench.run(*line.split())
        assert is_safe(answer.out + answer.err), line


def test_an_argument_forges_no_line(template: Bench) -> None:
    for words in ([HOSTILE], ["land", HOSTILE], ["run", "counts", f"--{HOSTILE}"], ["head", "counts", "-n", HOSTILE]):
        answer = template.run(*words)
        assert answer.code in {2, 78}, answer
        assert is_safe(answer.err), words


def test_several_lines_keep_breaks_and_blanks_for_tabs_only() -> None:
    assert visible_lines("a\n\tb\r\x1b") == "a\n    b\\r\\x1b"


@pytest.mark.parametrize("argument", ["9" * 5_000, "x" * 10**6], ids=range(2))
def test_an_argument_that_is_too_long_is_refused(template: Bench, argument: str) -> None:
    for words in (["land", argument], ["run", "counts", "--through", argument], ["why", "counts", argument]):
        answer = template.run(*words)
        answer.refused("argument-too-long")
        assert answer.code == 2


def test_an_argument_that_is_not_utf8_is_one_that_nothing_has(template: Bench, tmp_path: Path) -> None:
    for line in (
        "land \udcff",
        "run counts --branch \udcff",
        "why counts \udcff",
        "head \udcff",
        "run counts --until \udcff",
    ):
        assert template.run(*line.split()).code in {2, 78}, line
    template.done(f"report counts --out {tmp_path}/\udcff.html")


def test_a_deeply_nested_key_is_a_key_without_row(template: Bench) -> None:
    answer = template.run("why", "counts", f'{{"user": {"[" * 1_500}{"]" * 1_500}}}')
    assert answer.code in {1, 2}, answer


def test_a_path_of_the_environment_that_is_not_utf8_is_named() -> None:
    with pytest.raises(UnicodeEncodeError) as caught:
        "/work/\udcff/x".encode()
    failure = failure_of(caught.value)
    assert (failure.code, failure.exit_code, failure.facts["name"]) == ("name-not-utf8", 78, "/work/\udcff/x")
