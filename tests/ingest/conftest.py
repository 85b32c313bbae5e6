"""The landing engine of users at a project's root: Arrow in this process, and Spark for what only Spark reads."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def engine_at(spark):
    from rewindow.engine.spark.spark_landing import SparkLandingEngine, SparkPasses
    from rewindow.engine.worker.landing.arrow_landing import ArrowLandingEngine

    def engine(root):
        other = SparkLandingEngine(spark, project_root=str(root))
        passes = SparkPasses(lambda: spark, slots=2, project_root=str(root))
        return ArrowLandingEngine(
            lambda: other, passes, project_root=str(root), most_rows=1_000_000, on_workers=passes.read
        )

    return engine
