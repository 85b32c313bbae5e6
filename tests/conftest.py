"""Fixtures for all test folders (the Spark session, a copy of the project) and the Hypothesis profiles."""

from __future__ import annotations

import os
import resource
import shutil
import sys
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.bad_input.scene import Bench

ROOT = Path(__file__).resolve().parent.parent

# Slow examples do not fail: machines are shared and JVMs warm up. A failure prints the blob that repeats it.
settings.register_profile("local", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thousand", settings.get_profile("local"), max_examples=1_000)
settings.register_profile("deep", settings.get_profile("local"), max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "local"))

# A test that uses too much memory fails before the kernel kills the largest process.
MEMORY_BYTES = 6 << 30


LONGEST = ("tests/crash/", "tests/connect/", "tests/year/", "tests/object_store/", "tests/text/")
"""Folders of which a file takes half a minute or more: they come first, so that no worker is left with one at the end."""


def pytest_configure() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def pytest_collection_finish() -> None:
    """Cache the bytecode of tests until here, but not that of code that they write.

    Python would take a file that was edited twice within a second for unchanged.
    """
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # for the processes that tests start


@pytest.fixture(autouse=True)
def _own_path() -> Iterator[None]:
    """Restore the path of imports: whoever opens a project in this process leaves its root there."""
    path = list(sys.path)
    yield
    sys.path[:] = path


@pytest.fixture(autouse=True, scope="module")
def _own_modules() -> Iterator[None]:
    """Forget the code of projects that a file's tests wrote, before another project has modules of the same names."""
    yield
    for name, module in list(sys.modules.items()):
        path = Path(getattr(module, "__file__", None) or "")
        if path.is_relative_to(gettempdir()) and not path.is_relative_to(ROOT):
            del sys.modules[name]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Return the session that all tests share, on two cores. Mark the test with `pytest.mark.spark`."""
    from rewindow.engine.spark.session import local_session  # the tests without Spark never load it

    session = local_session(cores=2, python_path=[ROOT])
    yield session
    session.stop()


@pytest.fixture(scope="session")
def two_hours(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Return the project of `tests.bad_input.scene` that modules copy: two hours are landed and replayed, a third waits."""
    from tests.bad_input.scene import make_template, without_spark  # most folders never load it

    with without_spark():
        return make_template(tmp_path_factory.mktemp("two-hours") / "project")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Copy the project's conf/ and jobs/ to the test's temporary folder, and return the copy's root."""
    return copy_project(tmp_path)


def copy_project(folder: Path) -> Path:
    """Copy the project's conf/ and jobs/ into a new folder below this one, and return the copy's root."""
    root = folder / "project"
    for part in ("conf", "jobs"):
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (root / part).mkdir(parents=True)
    return root
