"""The projects that tests break, without Spark: two landings replayed, and what `rewindow init` writes. Each test has a copy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rewindow.app.new_project import Example, create_project
from tests.bad_input.scene import Bench, copy_of, without_spark


@pytest.fixture(scope="module")
def in_process() -> Iterator[None]:
    """Let the commands of a module execute the project's work in this process."""
    with without_spark():
        yield


@pytest.fixture(scope="module")
def template(two_hours: Bench, tmp_path_factory: pytest.TempPathFactory, in_process: None) -> Bench:
    return copy_of(two_hours, tmp_path_factory.mktemp("bench") / "project")


@pytest.fixture
def bench(template: Bench, tmp_path: Path) -> Bench:
    return copy_of(template, tmp_path / "project")


@pytest.fixture(scope="session")
def sample_template(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The project that `rewindow init` creates, landed and replayed."""
    bench = Bench(tmp_path_factory.mktemp("sample") / "project")
    create_project(bench.root, Example.WINDOWS)
    with without_spark():
        bench.done("land orders", "run daily_orders")
    return bench


@pytest.fixture
def sample(sample_template: Bench, tmp_path: Path, in_process: None) -> Bench:
    """A copy of the project that `rewindow init` creates, landed and replayed."""
    return copy_of(sample_template, tmp_path / "sample")


@pytest.fixture
def new_shop(tmp_path: Path, in_process: None) -> Bench:
    """The project that `rewindow init` creates, not landed."""
    create_project(tmp_path, Example.WINDOWS)
    return Bench(tmp_path)
