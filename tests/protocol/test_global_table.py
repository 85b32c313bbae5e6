"""A global table on both backends: rows committed through Spark give the tables of one run of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindow import StreamsBuilder, Topology
from tests.crash import scene
from tests.protocol import backends
from tests.protocol.backends import SEED, Backend

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def topology() -> Topology:
    """Join the records with the last value of another user, in a sub-topology of its own."""
    builder = StreamsBuilder()
    latest = builder.global_table(scene.TOPIC, store="latest")
    moved = builder.stream(scene.TOPIC).select_key(lambda _key, value: str(value % 5)).repartition(name="moved")
    joined = moved.left_join(
        latest, lambda _key, value: scene.USERS[value % 6], lambda one, row: f"{one}-{row}", value=str
    )
    joined.to("hourly")
    return builder.build()


def test_runs_cut_otherwise_give_the_tables_of_one_run_of_files(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene, "topology", topology)
    files = backends.direct(tmp_path)
    files.land_scene(SEED)
    backend.land_scene(SEED)
    assert backend.run("cut", 1, 3, scene.LANDINGS) == files.run("clean", scene.LANDINGS)
