"""The command line without Spark: every error is one line with the fix, the documented exit code and no stack trace."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rewindow.app.cli.entry import run_command
from rewindow.errors import SourceError, naming
from tests.refusals import Refusal, containing, refused


@pytest.fixture
def at(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project)
    return project


REFUSED = [
    pytest.param(["run"], 2, "JOB", id="missing argument"),
    pytest.param(["run", "nothing", "--wrong"], 2, "--wrong", id="unknown option"),
    pytest.param(["fly"], 2, "fly", id="unknown command"),
    pytest.param(["run", "hourly_departures", "--through", "soon"], 2, "2013-02-01", id="no time"),
    pytest.param(["run", "hourly_departures", "--through", "{{ ds }}"], 2, "template", id="template"),
    pytest.param(["run", "hourly_departures", "--through", "0"], 2, "numbered from 1", id="landing zero"),
    pytest.param(["run", "nobody"], 78, "nobody", id="unknown job"),
    pytest.param(["land", "nothing"], 78, "nothing", id="unknown feed"),
    pytest.param(["plan", "hourly_departures", "--target", "mars"], 78, "mars", id="unknown target"),
    pytest.param(["plan", "hourly_departures"], 66, "rewindow land flights", id="never landed"),
    pytest.param(["run", "hourly_departures"], 66, "rewindow land flights", id="run before land"),
]


@pytest.mark.parametrize(("arguments", "code", "named"), REFUSED)
def test_a_refusal_names_the_fix(
    at: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, named: str
) -> None:
    assert run_command(arguments) == code
    said = capsys.readouterr()
    assert named in said.err
    assert said.out == ""
    assert "Traceback" not in said.err
    assert not (at / "warehouse" / "rewindow" / "runs").exists()


def test_errors_are_one_json_object(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["head", "nobody", "--json"]) == 2
    said = json.loads(capsys.readouterr().out)
    assert (said["exit_code"], said["code"]) == (2, "name-not-found")
    assert "nobody" in said["error"]
    assert run_command(["head", "--nothing", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["code"] == "command-line-invalid"


def test_outside_a_project_the_error_names_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["plan", "hourly_departures"]) == 78
    assert "conf/" in capsys.readouterr().err


def slip(verbs: str) -> str:
    """Return a module whose topology has a mistake."""
    used = "from rewindow import StreamsBuilder, TimeWindows"
    return f"{used}\n\n\ndef build_topology():\n    StreamsBuilder().stream('orders'){verbs}\n"


@pytest.mark.parametrize(
    ("source", "refusal"),
    [
        ("import nowhere_to_be_found", refused("topology-import-missing", reason=containing("nowhere_to_be_found"))),
        ("def build(): return 3", refused("topology-function-missing", function="build_topology")),
        ("def build_topology(): return 3", refused("topology-not-returned")),
        ("1 / 0", refused("topology-import-failed", reason=containing("ZeroDivisionError"))),
        ("import sys\nsys.exit(0)", refused("topology-import-failed", reason=containing("SystemExit"))),
        ("async def build_topology(): pass", refused("topology-function-async", function="build_topology")),
        (slip(".groupByKey()"), refused("topology-function-failed", reason=containing("write group_by_key"))),
        (
            slip('.group_by_key().count(store="n").to("x")'),
            refused("topology-function-failed", reason=containing("call to_stream() before it")),
        ),
        (
            slip('.group_by_key().windowed_by(TimeWindows.of("1d"))'),
            refused("topology-function-failed", reason=containing("'grace'")),
        ),
        ("x = 1\ndef f(:\n", refused("topology-syntax-invalid", file=containing("broken_job.py"), line=2)),
    ],
)
def test_a_topology_that_does_not_load_names_file_and_fix(
    at: Path, capsys: pytest.CaptureFixture[str], source: str, refusal: Refusal
) -> None:
    import sys

    from rewindow.control.project_source import TopologyLoader

    (at / "broken_job.py").write_text(source)
    sys.modules.pop("broken_job", None)
    try:
        with refusal:
            TopologyLoader("j", "broken_job:build_topology", str(at))()
    finally:
        sys.modules.pop("broken_job", None)
        sys.path.remove(str(at))


def test_a_file_is_no_module(at: Path) -> None:
    from rewindow.control.project_source import TopologyLoader

    with refused("topology-module-missing", module="jobs/late.py", fix=containing("without .py")):
        TopologyLoader("j", "jobs/late.py:build", str(at))()


def test_an_unknown_feed_differs_from_one_that_was_never_landed(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = at / "conf/jobs/hourly_departures.yaml"
    job.write_text(job.read_text().replace("feed: flights", "feed: flihgts"))
    assert run_command(["plan", "hourly_departures"]) == 78
    assert capsys.readouterr().err.endswith("[job-feed-missing]\n")


def test_a_job_that_never_ran_says_so(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["show", "hourly_departures", "--branch", "v2"]) == 0
    said = capsys.readouterr().out
    assert said == (
        "Job hourly_departures has no runs on branch v2 yet. Start one with `rewindow run hourly_departures --branch v2`.\n"
    )


def test_suggested_commands_name_the_feed_and_job() -> None:
    message = "a.csv has changed: `rewindow land FEED --new-generation`, or `rewindow run JOB`"
    with (
        pytest.raises(SourceError, match="`rewindow land orders --new-generation`, or `rewindow run totals`"),
        naming(FEED="orders", JOB="totals"),
    ):
        raise SourceError("made-up", "{text}", text=message)


def test_the_pages_exit_codes_are_all_that_a_command_can_end_with() -> None:
    from rewindow.contracts.exit_codes import ON_HOLD
    from rewindow.errors import RewindowError

    page = (Path(__file__).parents[2] / "docs/reference/exit-codes.md").read_text()
    listed = {int(code) for code in re.findall(r"^\| \[?(\d+)\b", page, re.MULTILINE)}
    from_signals = {129, 130, 134, 137, 143}
    assert listed == {0, 1, ON_HOLD, *(kind.exit_code for kind in RewindowError.__subclasses__()), *from_signals}
