"""The tests through Spark take ten times as long. `make test` runs only the quick ones, and `make cluster` runs all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.protocol.backends import Backend

QUICK = ("test_a_ledger_takes_one_row_a_number",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "[spark" in item.name and not item.name.startswith(QUICK):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="module", params=["direct", "spark", "spark-inline"])
def backend(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Backend]:
    """Yield a backend. In a catalog whose small runs no worker executes, folds of ledgers are stored after each second append."""
    from tests.protocol import backends  # imports Spark only where it is needed

    root = tmp_path_factory.mktemp(request.param)
    if request.param == "direct":
        yield backends.direct(root)
        return
    from rewindow.tables.governed import ledger

    is_inline = request.param == "spark-inline"
    with pytest.MonkeyPatch.context() as patch:
        if is_inline:
            patch.setattr(ledger, "EVERY", 2)
        yield backends.through_spark(spark, root, most_here=10_000 if is_inline else 0)


@pytest.fixture(scope="module")
def jobs(backend: Backend) -> Backend:
    """Return the backend with the landed scene."""
    from tests.protocol.backends import SEED

    backend.land_scene(SEED)
    return backend


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the outputs of one clean run on the backend of files."""
    from tests.crash import scene
    from tests.protocol import backends

    files = backends.direct(tmp_path_factory.mktemp("clean"))
    files.land_scene(backends.SEED)
    return files.run("clean", scene.LANDINGS)
