"""What `rewindow status --json` says, taken apart."""

from __future__ import annotations

import json
from typing import Any

from rewindow.control.health.findings import Finding
from tests.bad_input.scene import Bench


def status(bench: Bench, *words: str, code: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the feeds and jobs by name, after a check of the exit code."""
    answer = bench.run("status", *words, "--json")
    assert answer.code == code, answer
    found = json.loads(answer.out)
    assert found["well"] is (code == 0)
    return {one["feed"]: one for one in found["feeds"]}, {one["job"]: one for one in found["jobs"]}


def only(subject: dict[str, Any]) -> dict[str, Any]:
    """Return the only finding of a feed or job."""
    (finding,) = subject["findings"]
    return finding


def finding_of(bench: Bench, *names: str) -> Finding:
    """Return the only finding."""
    (finding,) = bench.findings(*names)
    return finding


def alerts(bench: Bench, text: str) -> None:
    bench.edit("conf/jobs/counts.yaml", "on_code_change: accept\n", f"on_code_change: accept\nalerts: {{{text}}}\n")
