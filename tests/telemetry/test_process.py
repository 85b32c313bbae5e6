"""A new project in processes of its own: a consumer receives every event, although commands exit at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli_process import command, done
from tests.telemetry.consumer import Consumer

HOME = os.environ["HOME"]  # Spark's jars are there


@pytest.mark.spark
def test_the_runs_of_a_new_project_reach_a_consumer(tmp_path: Path, consumer: Consumer):
    done(command(tmp_path, "init", "shop"))
    shop = tmp_path / "shop"
    listening = {
        "HOME": HOME,
        "OPENLINEAGE_URL": consumer.url,
        "OTEL_TRACES_EXPORTER": "console",
        "OTEL_METRICS_EXPORTER": "none",
    }
    landed = done(command(shop, "land", "orders", **listening))
    start, complete = consumer.take()
    assert start["job"]["name"] == "shop.orders.land"
    assert complete["run"]["facets"]["rewindow_run"]["landings"] == landed["landings"]
    process = command(shop, "run", "daily_orders", **listening)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    assert err.count('"name": "rewindow run"') == 1
    assert err.count('"name": "execute sub-topology"') == 1
    start, complete = consumer.take()
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    facet = complete["run"]["facets"]["rewindow_run"]
    assert (facet["epochs"], facet["late"], facet["records"]) == ([1, 3], 1, {"orders": 10})
    (output,) = complete["outputs"]
    assert output["name"] == str(shop / "warehouse/shop/daily_orders")
    fields = output["facets"]["columnLineage"]["fields"]
    assert [field["field"] for field in fields["amount"]["inputFields"]] == ["amount"]
    (read,) = complete["inputs"]
    assert read["name"] == fields["amount"]["inputFields"][0]["name"]
