"""Through Spark a run takes ten times as long: of that backend `make test` runs what is marked so, `make cluster` all."""

from __future__ import annotations

import pytest

QUICK = ("test_a_ledger_takes_one_row_a_number",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "[spark" in item.name and not item.name.startswith(QUICK):
            item.add_marker(pytest.mark.cluster)
