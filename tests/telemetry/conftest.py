"""A small project without Spark, a consumer on the loopback interface, and an environment that configures nothing."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bad_input.scene import Bench, copy_of, without_spark
from tests.telemetry.consumer import Consumer


@pytest.fixture(scope="module")
def template(two_hours: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with without_spark():
        yield copy_of(two_hours, tmp_path_factory.mktemp("bench") / "shop")


@pytest.fixture
def bench(template: Bench, tmp_path: Path) -> Bench:
    return copy_of(template, tmp_path / "shop")


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith(("OPENLINEAGE", "OTEL_", "TRACEPARENT"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    yield
    for name in ("openlineage", "opentelemetry"):
        client = logging.getLogger(name)
        client.handlers.clear()
        client.propagate = True  # pytest adds a handler of its own to loggers that do not propagate


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Consumer]:
    """Return a consumer to which OPENLINEAGE_URL points."""
    made = Consumer()
    monkeypatch.setenv("OPENLINEAGE_URL", made.url)
    yield made
    made.close()
    # The client writes these when it is made.
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE__")]:
        del os.environ[name]
