"""Sources that have changed since they were landed, or that are not there. `tests/ingest` has all of them."""

from __future__ import annotations

from tests.bad_input.cases import Case
from tests.bad_input.scene import FEED, Bench, hour


def _named(name: str, source: str, code: str, /, **facts: object) -> Case:
    """Land another feed whose source is the output of a job."""
    feed = FEED.replace("feed: activity", "feed: other").replace("{path: raw, format: parquet}", source)
    feed = feed.replace(", arrived_at: got", "")
    return Case(name, "land other", code, facts, lambda bench: bench.write("conf/feeds/other.yaml", feed))


def _other_content(bench: Bench) -> None:
    bench.rows("h0", hour(5))


CASES = [
    Case(
        "a landed file has other content",
        "land activity",
        "landed-file-changed",
        {"what": "has changed"},
        _other_content,
    ),
    _named("an unknown job", "{job: nobody, output: x}", "job-never-run", job="nobody"),
    _named("an unknown output", "{job: counts, output: x}", "job-output-unknown", output="x", outputs="totals"),
]
