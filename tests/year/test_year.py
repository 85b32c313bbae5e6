"""A year of some hours: interrupted, it goes on, and ends with the tables of one run over everything."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.year import __main__ as command
from tests.year import law
from tests.year.events import Year
from tests.year.odd_cases import CASES, call
from tests.year.simulation import FIGURES, Simulation, read_lines
from tests.year.watched import watched

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux counts")]
YEAR = Year(12, 4, samples=0, upgraded=2)


class InterruptionError(Exception):
    """Stands for Ctrl-C."""


def test_an_interrupted_year_goes_on_and_equals_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(_line: str) -> None:
        raise InterruptionError

    with pytest.raises(InterruptionError):
        Simulation(tmp_path, YEAR, interrupt).play()
    assert len(read_lines(tmp_path)) == YEAR.day
    with (tmp_path / FIGURES).open("a") as file:
        file.write('{"hour": 4, "ru')  # a line that an interruption cut off
    lines = Simulation(tmp_path, YEAR).play()
    assert [line["hour"] for line in lines] == list(range(YEAR.hours))
    assert {"upgrade", "rewind", "branch"} <= {part for line in lines for part in line}
    found = law.compare(tmp_path)
    assert found["different"] == []
    assert found["tables"] >= 6
    with pytest.raises(AssertionError, match="has another year"):
        Simulation(tmp_path, Year(13, 4)).play()
    (tmp_path / command.LAW).write_text(json.dumps(found))
    command.main(["report", "--folder", str(tmp_path), "--json"])
    assert json.loads(capsys.readouterr().out)["runs"] == lines[-1]["runs"]


def test_an_odd_size_is_called_in_processes_of_its_own() -> None:
    called = call(CASES["landings"], 3)
    assert called.is_clear
    assert [one["code"] for one in called.commands] == [0] * len(CASES["landings"].commands)
    assert all(one["peak_mb"] > 20 for one in called.commands)


def test_a_command_beyond_its_bounds_is_killed_and_not_clear(tmp_path: Path) -> None:
    done = watched(tmp_path, "ls", most_mb=1)
    assert done.code == -9
    assert not done.is_clear
    assert done.last_line.startswith("killed at")


def test_an_unknown_size_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["sizes", "nothing"]) == 2
    assert "choose from landings" in capsys.readouterr().err
