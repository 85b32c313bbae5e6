"""A project with late records, which tests of the report read; those that change it copy it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bad_input.scene import Bench, without_spark
from tests.report.project import make_project


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    with without_spark():
        return make_project(tmp_path_factory.mktemp("report") / "project")


@pytest.fixture(scope="module")
def project(made: Bench) -> Iterator[Bench]:
    with without_spark():
        yield made
