"""Projects of published cases: their feed and jobs, the landings into which their records are divided, and the rows of an output."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from rewindow.app.open_project import OpenProject
from rewindow.tables.delta.table_rows import read_rows

Published = Mapping[str, str]
"""The published records of each topic as JSON lines, in the order in which the topics were produced."""


def project_of(
    root: Path, logs: Mapping[str, Mapping[str, Any]], jobs: Mapping[str, Mapping[str, Any]], *, partitions: int = 1
) -> OpenProject:
    """Write a project with one feed and no records yet. Each job has `topology` and `outputs`, which is a list of topics."""
    feed_logs = {
        topic: {"order": "file", **log, "source": {"format": "json", "path": f"data/{topic}", **log.get("source", {})}}
        for topic, log in logs.items()
    }
    files: dict[str, Any] = {
        "feeds/feed": {"feed": "feed", "partitions": partitions, "logs": feed_logs},
        "targets/local": {"target": "local", "warehouse": "warehouse"},
    }
    for name, job in jobs.items():
        outputs = {topic: {"table": f"rows.{topic}"} for topic in job["outputs"]}
        files[f"jobs/{name}"] = {"job": name, "feed": "feed", **job, "outputs": outputs}
    for name, content in files.items():
        path = root / f"conf/{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    for topic in logs:
        (root / "data" / topic).mkdir(parents=True)
    return OpenProject.open(root)


def landings_of(published: Published | list[Published], *, cut: bool) -> list[list[tuple[str, str]]]:
    """Divide the records, in their order. The first landing has a record of each topic: a source without files is refused."""
    rounds = published if isinstance(published, list) else [published]
    records = [(topic, line) for texts in rounds for topic, text in texts.items() for line in text.strip().splitlines()]
    first = 1 + [topic for topic, _ in records].index(records[-1][0])
    bounds = [0, first, (first + len(records)) // 2, len(records)] if cut else [0, len(records)]
    return [records[low:high] for low, high in pairwise(bounds) if low < high]


def land(project: OpenProject, number: int, landing: list[tuple[str, str]]) -> None:
    """Write the files of a landing and land them."""
    for topic in dict(landing):
        lines = [line + "\n" for owner, line in landing if owner == topic]
        (project.root / "data" / topic / f"{number}.json").write_text("".join(lines), encoding="utf-8")
    project.land("feed")


def rows_of(project: OpenProject, topic: str) -> list[dict[str, Any]]:
    """Return the rows of an output, in the order in which they were sent."""
    rows = read_rows(f"{project.warehouse}/rows/{topic}").to_pylist()
    return sorted(rows, key=lambda row: (row["_epoch"], row["_partition"], row["_offset"]))
