"""Report each airport's departures every 6 hours of stream time, or after 8 hours of wall-clock time without a report.

This is the hybrid punctuation of KIP-138: when one schedule fires, it restarts the other. The schedules have names
because rewindow creates a new processor in every epoch, and the processor finds its schedules by name.
"""

from typing import NamedTuple

from rewindow import (
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    Topology,
    key_value_store,
)


class Report(NamedTuple):
    """Departures since the last report, and which schedule asked for it."""

    departures: int
    asked_by: str


class DepartureBoard(Processor):
    """Count departures by airport; report and reset the counts at every punctuation."""

    def init(self, context: ProcessorContext) -> None:
        """Start both schedules. In a later epoch this finds the existing ones and leaves them running."""
        self.context = context
        self.counts = context.store("departures-since-report")
        self.arm_stream_time()
        self.arm_wall_clock()

    def process(self, record: Record) -> None:
        """Count a departure."""
        self.counts.put(record.key, (self.counts.get(record.key) or 0) + 1)

    def on_stream_time(self, now_ms: int) -> None:
        """Handle six hours of stream time."""
        self.report(now_ms, "stream time")
        self.arm_wall_clock()

    def on_wall_clock(self, now_ms: int) -> None:
        """Handle eight hours of wall-clock time without a report."""
        self.report(now_ms, "wall clock")
        self.arm_stream_time()

    def report(self, now_ms: int, asked_by: str) -> None:
        """Forward one report per airport that had departures."""
        for origin, departures in self.counts.all():
            self.context.forward(Record(origin, Report(departures, asked_by), now_ms))
            self.counts.delete(origin)

    def arm_stream_time(self) -> None:
        """Restart the stream-time schedule."""
        self.context.schedule("6h", PunctuationType.STREAM_TIME, self.on_stream_time, name="flights")

    def arm_wall_clock(self) -> None:
        """Restart the wall-clock schedule."""
        self.context.schedule("8h", PunctuationType.WALL_CLOCK_TIME, self.on_wall_clock, name="clock")


def build_topology() -> Topology:
    """Build the topology. A cancelled flight has no delay and is not counted."""
    builder = StreamsBuilder()
    (
        builder.stream("departures")
        .where("dep_delay is not null")
        .process(
            DepartureBoard,
            name="board",
            stores=[key_value_store("departures-since-report", key=str, value=int)],
            key=str,
            value=Report,
        )
        .to("departure-board")
    )
    return builder.build()
