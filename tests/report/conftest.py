"""A project with late records, which tests of the report read; those that change it copy it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bad_input.scene import Bench, without_spark
from tests.report.project import make_project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with without_spark():
        yield make_project(tmp_path_factory.mktemp("report") / "project")
