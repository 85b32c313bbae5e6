"""Features that need files are refused for tables of a catalog, before Spark starts, with a message that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rewindow.app.cli.entry import run_command
from rewindow.app.open_project import OpenProject


def in_catalog(project: Path) -> OpenProject:
    target = {"target": "rows", "warehouse": "warehouse", "cores": 1, "source": "shuffle"}
    through = {"commit": "spark", "staging": "rows", "catalog": "spark_catalog.rewindow"}
    (project / "conf" / "targets" / "rows.yaml").write_text(yaml.safe_dump({**target, **through}))
    return OpenProject.open(project, "rows")


def test_commands_that_open_files_say_what_to_do_in_a_catalog(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    in_catalog(project)
    says = {
        "why quiet_carriers UA": "in a target whose tables are files",
    }
    for command, advice in says.items():
        code = run_command([*command.split(), "--target", "rows", "--project", str(project)])
        said = " ".join(capsys.readouterr().err.split())
        assert (code, advice in said, "`commit: spark`" in said) == (78, True, True), said
