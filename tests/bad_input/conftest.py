"""The project that tests break: two landings replayed, without Spark. Each test works on a copy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, copy_of, make_template, without_spark


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with without_spark():
        yield make_template(tmp_path_factory.mktemp("bench") / "project")


@pytest.fixture
def bench(template: Bench, tmp_path: Path) -> Bench:
    return copy_of(template, tmp_path / "project")
