"""Values are printed as they are, whatever characters they have."""

from __future__ import annotations

import pytest

from rewindow.app.cli.printing import Printer
from rewindow.app.sentences import as_assignments

AWKWARD = "line\nbreak [red]x[/red] [/nothing] \x1b[31m \u00e9"
SHOWN = "line\\nbreak [red]x[/red] [/nothing] \\x1b[31m \u00e9"


def test_a_table_shows_line_breaks_and_brackets_of_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    Printer().table("[t]", [{"[note]": AWKWARD, "n": 1}])
    title, names, _, row = (line.strip() for line in capsys.readouterr().out.splitlines())
    assert (title, names.split()[0]) == ("[t]", "[note]")
    assert row.partition(" │")[0].rstrip() == SHOWN


def test_a_row_in_a_sentence_stays_on_its_line() -> None:
    assert as_assignments({"note": AWKWARD, "n": 1}) == f"note={SHOWN}, n=1"
