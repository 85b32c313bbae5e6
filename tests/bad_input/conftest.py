"""The projects that tests break, without Spark: two landings replayed, and what `rewindow init` writes. Each test has a copy."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from rewindow.app.cli.entry import run_command
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


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The project that `rewindow init` creates."""
    create_project(tmp_path, Example.WINDOWS)
    return tmp_path


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
def new_shop(shop: Path, in_process: None) -> Bench:
    """The project that `rewindow init` creates, not landed."""
    return Bench(shop)


@pytest.fixture
def orders(shop: Path) -> Path:
    """The only file of the feed."""
    (file,) = (shop / "data/orders").iterdir()
    return file


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], shop: Path) -> Iterator[Callable[..., tuple[int, str]]]:
    """Return a function that runs a command as a process of its own would: with the code as it is now."""
    before = _without_own_code()

    def run(*command: str) -> tuple[int, str]:
        _without_own_code()
        code = run_command([*command, "--project", str(shop)])
        out, err = capsys.readouterr()
        return code, out + err

    yield run
    _without_own_code()
    sys.modules.update(before)


def _without_own_code() -> dict[str, ModuleType]:
    """Let the modules of a project be imported again; return those that were imported."""
    importlib.invalidate_caches()
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "jobs"}
