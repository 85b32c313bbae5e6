"""The library behind a real Spark Connect server, with files staged on a disk that both reach: the same tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from rewindow.plan.spec import RunRequest
from rewindow.project import Project
from tests.cli_process import command, done
from tests.conftest import ROOT, copy_project
from tests.daemons import build_wheel, connect_server, python_without_rewindow
from tests.end_to_end.flights import write_sources

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("connect")
    with connect_server(folder / "server", python_without_rewindow(folder / "python")) as url:
        yield url


@pytest.fixture(scope="module")
def root(server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_project(tmp_path_factory.mktemp("project"))
    write_sources(root)
    build_wheel(ROOT, root / "dist")
    target = {"target": "connect", "warehouse": "warehouse", "connect": server, "cores": 2, "ships": ["dist/*.whl"]}
    (root / "conf" / "targets" / "connect.yaml").write_text(yaml.safe_dump(target))
    return root


def test_landing_and_running_through_spark_connect(root: Path, spark) -> None:
    done(command(root, "land", "flights", "--target", "connect"))
    done(command(root, "run", "quiet_carriers", "--target", "connect", "--lineage", "there"))
    here = Project.open(root)
    here.run("quiet_carriers", RunRequest(lineage="here"))
    assert here.tables.hashes("quiet_carriers", "there") == here.tables.hashes("quiet_carriers", "here")


@pytest.mark.cluster
def test_staged_rows_and_a_ledger_through_spark_connect(root: Path, spark) -> None:
    target = yaml.safe_load((root / "conf" / "targets" / "connect.yaml").read_text())
    rows = {"commit": "spark", "staging": "rows", "catalog": "spark_catalog.rewindow", "source": "shuffled"}
    (root / "conf" / "targets" / "rows.yaml").write_text(yaml.safe_dump({**target, "target": "rows", **rows}))
    job = root / "conf" / "jobs" / "quiet_carriers.yaml"
    job.write_text(job.read_text().replace("table: flights.", "table: spark_catalog.flights."))
    here = Project.open(root)
    if not (Path(here.warehouse) / "logs").exists():
        here.land("flights")
    done(command(root, "land", "flights", "--target", "rows"))
    for through in ("2", "3"):
        done(command(root, "run", "quiet_carriers", "--target", "rows", "--through", through))
    said = done(command(root, "show", "quiet_carriers", "--target", "rows", "--hashes"))
    (there,) = [table for table in said["tables"] if table["table"].startswith("output/")]
    assert there["path"] == "spark_catalog.flights.quiet_carriers"
    job.write_text(job.read_text().replace("table: spark_catalog.flights.", "table: flights."))
    here.run("quiet_carriers", RunRequest(lineage="files", through_landing=3))
    assert here.tables.hashes("quiet_carriers", "files")["output/quiet-carriers"][:16] == there["content"]
    assert there["rows"] > 100


def test_a_server_that_does_not_answer_is_named(root: Path) -> None:
    target = yaml.safe_load((root / "conf" / "targets" / "connect.yaml").read_text())
    nobody = {**target, "target": "nobody", "connect": "sc://127.0.0.1:1/;token=secret"}
    (root / "conf" / "targets" / "nobody.yaml").write_text(yaml.safe_dump(nobody))
    said = done(command(root, "land", "flights", "--target", "nobody"), 78)
    assert "127.0.0.1:1 cannot be used" in said["error"]
    assert "secret" not in said["error"]
