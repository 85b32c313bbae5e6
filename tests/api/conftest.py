"""Projects that are used from Python, without Spark. Each test works on a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import rewindow
from tests.api.shop import NEXT_DAYS, new_shop, write_orders


@pytest.fixture
def shop(tmp_path: Path) -> rewindow.Project:
    """The project that was never landed."""
    return new_shop(tmp_path / "shop")


@pytest.fixture(scope="session")
def landed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = new_shop(tmp_path_factory.mktemp("landed") / "shop")
    project.land("orders")
    return project.root


@pytest.fixture(scope="session")
def run_twice(landed_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = copy_of(landed_once, tmp_path_factory.mktemp("run_twice"))
    project.run("daily_orders")
    write_orders(project.root, "next_days", NEXT_DAYS)
    project.run("daily_orders", land=True)
    return project.root


@pytest.fixture
def landed(landed_once: Path, tmp_path: Path) -> rewindow.Project:
    """The project with three landings."""
    return copy_of(landed_once, tmp_path)


@pytest.fixture
def with_two_runs(run_twice: Path, tmp_path: Path) -> rewindow.Project:
    """The project with a run of three landings, and one of the fourth."""
    return copy_of(run_twice, tmp_path)


def copy_of(root: Path, folder: Path) -> rewindow.Project:
    """Return a copy of a project, with the times of its files."""
    return rewindow.Project.load(shutil.copytree(root, folder / "shop"))
