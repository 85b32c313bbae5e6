"""A small project with two targets, a disk and a bucket, and what must be true of both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from rewindow.tables.delta.commit import table_path
from rewindow.tables.delta.content_hash import content_hash
from rewindow.tables.delta.warehouse import DeltaTables
from tests.bad_input.scene import FEED, JOB, TARGET, Answer, Bench
from tests.object_store.server import BUCKET

HOURS = 2
THERE = ("--target", "bucket")


def make(root: Path, settings: dict[str, str]) -> tuple[Bench, str]:
    """Make a project with two targets, and nothing landed; return it with the bucket's."""
    bench, place = Bench(root), f"s3://{BUCKET}/{uuid4().hex[:8]}/warehouse"
    bench.write("conf/feeds/activity.yaml", FEED)
    bench.write("conf/jobs/counts.yaml", JOB)
    bench.write("conf/targets/local.yaml", TARGET)
    there = {"target": "bucket", "warehouse": place, "cores": 2, "storage_options": settings}
    bench.write("conf/targets/bucket.yaml", yaml.safe_dump(there))
    bench.code("def score(row):\n    return row.x * 2\n")
    return bench, place


def done(answer: Answer) -> Any:
    """See that a command ended well and showed no secret; return what it said."""
    assert answer.code == 0, answer.err
    assert "canary" not in answer.out + answer.err
    return json.loads(answer.out)


def content(warehouse: str, branch: str = "main") -> dict[str, str]:
    """Return the content of every table of a warehouse, as hashes."""
    log = content_hash(table_path(warehouse, "logs/activity/events"))
    return {"log": log, **DeltaTables(warehouse).hashes("counts", branch)}
