"""Governed tables may be catalog-managed: a job gives the same rows, though its newest commits are in no log's folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what a job found in a JVM whose tables are managed by Delta's stand-in for a catalog."""
    root = tmp_path_factory.mktemp("managed")
    answer = root / "answer.json"
    command = [sys.executable, "-m", "tests.protocol.catalog_managed", str(root / "tables"), str(answer)]
    environment = {**os.environ, "SPARK_TESTING": "1", "PYTHONPATH": os.pathsep.join([str(ROOT / "lib"), str(ROOT)])}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=540, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(answer.read_text())


def test_runs_branches_and_promotions_give_the_rows_of_files(found: Any) -> None:
    assert found["main"] == found["promoted"] == found["expected"]


def test_commits_were_not_published_when_they_were_read(found: Any) -> None:
    behind = {name for name, table in found["tables"].items() if table["staged"] > table["published"]}
    assert {"hourly", "sizes", "log_activity__events"} <= behind, "otherwise this test shows nothing"


def test_a_source_with_unpublished_commits_is_read_to_its_end(found: Any) -> None:
    assert found["source"] == [1, 2, 3]


def test_direct_access_to_these_tables_is_refused_by_name(found: Any) -> None:
    for table in found["tables"].values():
        assert table["says"].startswith("78: ")
        assert "is a catalog-managed table (catalogManaged)" in table["says"]
