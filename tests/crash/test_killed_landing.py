"""Landings of real commands that are killed without warning, by this process and by Spark's workers."""

from __future__ import annotations

import pytest

from tests.bench.rounds import IN_PROCESS, ON_SPARK
from tests.crash.killed_landing import kill, land, scene, write_raw

ROWS = 200_000


@pytest.mark.parametrize(
    ("kind", "inline"),
    [
        pytest.param("csv", IN_PROCESS, marks=pytest.mark.slow),
        pytest.param("json", ON_SPARK, marks=pytest.mark.spark),
    ],
)
def test_a_landing_that_is_killed_while_it_writes_the_log_lands_every_record_once(tmp_path, kind, inline):
    write_raw(tmp_path / "raw", ROWS, kind)
    expected = land(scene(tmp_path / "unbroken", tmp_path / "raw", IN_PROCESS, kind))
    assert expected.rows == ROWS
    root = scene(tmp_path / "killed", tmp_path / "raw", inline, kind)
    assert kill(root, files=20) == "writing the log"
    assert land(root) == expected
