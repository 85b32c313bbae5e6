"""The same kills with tasks on real Spark: one JVM stays up, and drivers are killed, also in the middle of Spark jobs.

A driver is a fork that attaches to the JVM. Its running Spark jobs continue after its death, as on a cluster that lost a
driver.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rewindow.engine.worker.local_engine import LocalEngine
from tests.conftest import ROOT
from tests.crash import scene
from tests.crash.matrix import run_matrix, warm_up
from tests.crash.results import Results
from tests.crash.settings import Figures, Settings

if TYPE_CHECKING:
    from rewindow.control.run import Engine

OPERATIONS = ("first-run", "run", "backfill")
"""The operations that use Spark. The others are the same without it."""

SEEDS = 3


@contextmanager
def one_jvm() -> Iterator[None]:
    """Start a JVM to which children attach. It ends with the block."""
    from pyspark import SparkConf

    from rewindow.engine.spark.session import _environment, _launch, local_conf

    conf = SparkConf(loadDefaults=False).setMaster("local[2]").setAppName("rewindow-crash")
    conf.setAll(list(local_conf(2).items()))
    with _environment([ROOT, ROOT / "lib"], sys.executable, on_loopback=True):
        gateway = _launch(conf, debug=False)
        os.environ["PYSPARK_GATEWAY_PORT"] = str(gateway.gateway_parameters.port)
        os.environ["PYSPARK_GATEWAY_SECRET"] = gateway.gateway_parameters.auth_token
        try:
            yield
        finally:
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
            gateway.proc.stdin.close()
            gateway.proc.wait(60)


def engine() -> Engine:
    """Attach to the JVM. PySpark raises an error if it is gone."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    from rewindow.engine.spark.spark_engine import SparkEngine

    context = SparkContext._active_spark_context
    if context is None:
        gateway = launch_gateway()
        jvm = gateway.jvm
        java = jvm.JavaSparkContext.fromSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
        context = SparkContext(jsc=java, gateway=gateway, conf=SparkConf(_jconf=java.getConf()))
    return SparkEngine(SparkSession(context), slots=2, import_paths=[str(ROOT), str(ROOT / "lib")])


def suite(settings: Settings) -> Figures:
    """Kill a driver at each site. ``quick``: at a few sites of one operation."""
    figures, results = Figures("spark"), Results.of("spark", settings.results)
    warm_up()
    scene.engine_of = engine
    try:
        with one_jvm():
            names = ["run"] if settings.quick else list(OPERATIONS)
            every = 25 if settings.quick else 1
            for seed in range(1 if settings.quick else min(SEEDS, settings.seeds)):
                run_matrix(names, seed, results, settings.say, at_once=1, point=settings.point, every=every)
    finally:
        scene.engine_of = LocalEngine
    for (name, seed, site), said in results.said.items():
        figures.count(said, f"{name} {seed} {site}")
    figures.more = dict(results.extent())
    return figures
