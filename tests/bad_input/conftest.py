"""The projects that tests break, without Spark: two landings replayed, and what `rewindow init` writes. Each test has a copy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rewindow.app.new_project import Example, create_project
from tests.bad_input.scene import Bench, copy_of, make_template, without_spark


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with without_spark():
        yield make_template(tmp_path_factory.mktemp("bench") / "project")


@pytest.fixture(scope="module")
def in_process() -> Iterator[None]:
    """Let the commands of a module execute the project's work in this process."""
    with without_spark():
        yield


@pytest.fixture
def bench(template: Bench, tmp_path: Path) -> Bench:
    return copy_of(template, tmp_path / "project")


@pytest.fixture(scope="module")
def sample_template(tmp_path_factory: pytest.TempPathFactory, in_process: None) -> Bench:
    """The project that `rewindow init` creates, landed and replayed."""
    bench = Bench(tmp_path_factory.mktemp("sample") / "project")
    create_project(bench.root, Example.WINDOWS)
    bench.done("land orders", "run daily_orders")
    return bench


@pytest.fixture
def sample(sample_template: Bench, tmp_path: Path) -> Bench:
    """A copy of the project that `rewindow init` creates, landed and replayed."""
    return copy_of(sample_template, tmp_path / "sample")


@pytest.fixture
def new_shop(tmp_path: Path, in_process: None) -> Bench:
    """The project that `rewindow init` creates, not landed."""
    create_project(tmp_path, Example.WINDOWS)
    return Bench(tmp_path)
