"""The landing engine on Spark, for a project's root."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def engine_at(spark):
    from rewindow.engine.spark.ingest import SparkLandingEngine

    return lambda root: SparkLandingEngine(spark, project_root=str(root))
