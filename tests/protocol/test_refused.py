"""Features that need files are refused for tables of a catalog, before Spark starts, with a message that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from rewindow.app.maintenance import FeedMaintenance, JobMaintenance
from rewindow.app.project import Project
from rewindow.errors import ConfigError

ASKED: dict[str, tuple[str, Callable[[JobMaintenance], object]]] = {
    "republish": ("RESTORE the table", lambda job: job.republish("main", [], all_tables=False)),
    "gc": ("VACUUM", lambda job: job.collect(0)),
    "gc --dry-run": ("VACUUM", lambda job: job.would_collect(0)),
}


def in_catalog(project: Path) -> Project:
    target = {"target": "rows", "warehouse": "warehouse", "cores": 1, "source": "shuffle"}
    through = {"commit": "spark", "staging": "rows", "catalog": "spark_catalog.rewindow"}
    (project / "conf" / "targets" / "rows.yaml").write_text(yaml.safe_dump({**target, **through}))
    return Project.open(project, "rows")


@pytest.mark.parametrize("command", ASKED)
def test_what_needs_files_is_refused_in_a_catalog(project: Path, command: str) -> None:
    says, ask = ASKED[command]
    governed = in_catalog(project)
    with pytest.raises(ConfigError, match=f"is not available with `commit: spark`.*{says}"):
        ask(JobMaintenance(governed, "quiet_carriers"))
    assert "spark" not in vars(governed)


def test_the_files_of_feeds_are_refused_too(project: Path) -> None:
    governed = in_catalog(project)
    with pytest.raises(ConfigError, match="use the catalog's OPTIMIZE and VACUUM"):
        FeedMaintenance(governed, "flights")
    assert "spark" not in vars(governed)
