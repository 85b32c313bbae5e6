"""One Airflow home per test run, created on first use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.airflow.forked import Airflow, loaded
from tests.airflow.home import ROOT, environment, migrate
from tests.airflow.shop import make_shop


@pytest.fixture(scope="session")
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home of an Airflow whose database is ready."""
    home = tmp_path_factory.mktemp("airflow")
    migrate(environment(home, home))
    return home


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """Return an Airflow that is loaded once, and has no database."""
    with loaded(environment(tmp_path_factory.mktemp("airflow"), ROOT / "dags")) as process:
        yield process


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the small project of `tests.airflow.shop`."""
    return make_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="session")
def shop_env(airflow_home: Path, shop: Path) -> dict[str, str]:
    """Return the environment of an Airflow that has the shop's DAG file."""
    return environment(airflow_home, shop / "dags")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def scheduler_env(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return the environment of an Airflow for a scheduler, on each database that is there. The test adds its DAG files."""
    from tests.airflow.postgres import drivers, postgresql, why_missing  # needs Airflow's dependencies

    home = tmp_path_factory.mktemp("airflow")
    if request.param == "sqlite":
        env = environment(home, home)
        migrate(env)
        yield env
        return
    if missing := why_missing():
        pytest.skip(missing)
    with postgresql() as database:
        env = environment(home, home, database)
        env["PYTHONPATH"] = f"{env['PYTHONPATH']}{os.pathsep}{drivers()}"
        migrate(env)
        yield env
