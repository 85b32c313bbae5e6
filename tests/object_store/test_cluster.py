"""A cluster whose executors share no folder: the bucket's settings are sent with their work."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rewindow.storage.locations import use
from tests.bad_input.scene import hour, without_spark
from tests.cli_process import command
from tests.cli_process import done as ended
from tests.conftest import ROOT
from tests.daemons import build_wheel, cluster, python_without_rewindow
from tests.object_store.scene import HOURS, content, done, make

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]


def test_a_cluster_works_in_a_bucket(tmp_path: Path, settings: dict[str, str]) -> None:
    bench, warehouse = make(tmp_path / "project", settings)
    for number in range(HOURS):
        bench.rows(f"h{number}", hour(number))
    build_wheel(ROOT, bench.root / "dist")
    with cluster(tmp_path / "daemons") as daemons:
        target = yaml.safe_load((bench.root / "conf/targets/bucket.yaml").read_text())
        python = {"spark.pyspark.python": str(python_without_rewindow(tmp_path / "python"))}
        elsewhere = {"master": daemons.master, "ships": ["dist/rewindow-*.whl"], "spark": python}
        bench.write("conf/targets/there.yaml", yaml.safe_dump({**target, **elsewhere, "target": "there"}))
        ended(command(bench.root, "land", "activity", "--target", "there"))
        ended(command(bench.root, "run", "counts", "--target", "there"))
        log_text = "".join(
            path.read_text()
            for path in (tmp_path / "daemons").rglob("*")
            if path.is_file() and path.suffix in {"", ".log"}
        )
        assert "canary" not in log_text, "no log of the cluster has a secret"
    with without_spark():
        done(bench.run("land", "activity", "--json"))
        done(bench.run("run", "counts", "--json"))
    use(warehouse, settings)
    assert content(warehouse) == content(str(bench.warehouse))
