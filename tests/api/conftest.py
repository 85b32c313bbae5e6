"""Projects that are used from Python, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

import rewindow
from tests.api.shop import NEXT_DAYS, new_shop, write_orders


@pytest.fixture
def shop(tmp_path: Path) -> rewindow.Project:
    return new_shop(tmp_path / "shop")


@pytest.fixture
def landed(shop: rewindow.Project) -> rewindow.Project:
    shop.land("orders")
    return shop


@pytest.fixture
def with_two_runs(landed: rewindow.Project) -> rewindow.Project:
    landed.run("daily_orders")
    write_orders(landed.root, "next_days", NEXT_DAYS)
    landed.run("daily_orders", land=True)
    return landed
