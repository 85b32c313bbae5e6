"""The page of metrics, from their table in `streams.metrics`."""

from __future__ import annotations

from rewindow.streams.metrics import KINDS
from tests.docs.markdown import GENERATED, table

HEAD = f"""\
# Metrics

The names are those of KIP-328 and KIP-353. `rewindow show JOB` shows them, and the table `rewindow/metrics` has a row for each
task, node, metric and run ([Tables](tables.md#rewindowmetrics)). A row has count, total and extrema, so the values of several
tasks and runs can be combined. Metrics are part of the result: a replay gives the same metrics. Every metric is recorded,
whatever recording level it has in Kafka. A metric of your own (`context.measure`) has a total and a rate.

A rate is the total per second of simulated time. Late, skipped and expired records are also counted by reason.

{GENERATED}
"""


def page() -> str:
    """Return the text of the page."""
    rows = [
        (f"`{name}`", kind.meaning, kind.unit, ", ".join(kind.parts), kind.recording_level)
        for name, kind in sorted(KINDS.items())
    ]
    return HEAD + table(("metric", "what it measures", "unit", "shown as", "Kafka's level"), rows)
