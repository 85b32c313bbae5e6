"""A feed of the outputs of the job `counts`, and jobs that read it."""

from __future__ import annotations

from tests.bad_input.scene import Bench

TOTALS = """\
feed: totals
partitions: 2
logs:
  totals: {source: {job: counts, output: totals}, key: user, timestamp: _timestamp}
"""
READER = """\
from rewindow import StreamsBuilder


def build():
    builder = StreamsBuilder()
    builder.stream("totals").to("seen")
    return builder.build()
"""


def reads_totals(bench: Bench) -> None:
    """Add the feed of the outputs of `counts`, and two jobs that read it: `seen` and `idle`."""
    bench.write("conf/feeds/totals.yaml", TOTALS)
    for name in ("seen", "idle"):
        bench.write(
            f"conf/jobs/{name}.yaml",
            f"job: {name}\ntopology: reader:build\nfeed: totals\noutputs: {{seen: {{table: {name}.seen}}}}\n",
        )
    bench.write("reader.py", READER)
