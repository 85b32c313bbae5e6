"""A small project with two targets: a local disk and a bucket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from rewindow.tables.delta.open_table import table_path
from rewindow.tables.delta.table_rows import content_hash
from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import FEED, JOB, TARGET, Answer, Bench
from tests.object_store.server import BUCKET

HOURS = 2
THERE = ("--target", "bucket")


def make(root: Path, settings: dict[str, str]) -> tuple[Bench, str]:
    """Create a project with two targets and no landings. Return it with the bucket's warehouse."""
    bench, warehouse = Bench(root), f"s3://{BUCKET}/{uuid4().hex[:8]}/warehouse"
    bench.write("conf/feeds/activity.yaml", FEED)
    bench.write("conf/jobs/counts.yaml", JOB)
    bench.write("conf/targets/local.yaml", TARGET)
    bucket_target = {"target": "bucket", "warehouse": warehouse, "cores": 2, "storage_options": settings}
    bench.write("conf/targets/bucket.yaml", yaml.safe_dump(bucket_target))
    bench.code("def score(row):\n    return row.x * 2\n")
    return bench, warehouse


def done(answer: Answer) -> Any:
    """Check that a command succeeded and showed no secret. Return its output."""
    assert answer.code == 0, answer.err
    assert "canary" not in answer.out + answer.err
    return json.loads(answer.out)


def content(warehouse: str, branch: str = "main") -> dict[str, str]:
    """Return the content hash of every table of a warehouse."""
    log = content_hash(table_path(warehouse, "logs/activity/events"))
    return {"log": log, **DeltaTables(warehouse).hashes("counts", branch)}
