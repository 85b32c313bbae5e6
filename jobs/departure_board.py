"""Report each airport's departures every 6 hours of flight time, or after 8 hours on the clock if no flight comes.

This is the hybrid punctuation of KIP-138: each of the two schedules starts the other one anew when it fires. They have
names, because a processor is made anew in each epoch and finds its schedules by name.
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
    """Counts by airport; reports and forgets at every punctuation."""

    def init(self, context: ProcessorContext) -> None:
        """Arm both schedules; in a later epoch this finds them again as they are."""
        self.context = context
        self.counts = context.store("departures-since-report")
        self.arm_stream_time()
        self.arm_wall_clock()

    def process(self, record: Record) -> None:
        """Count a departure."""
        if record.value.dep_delay is not None:
            self.counts.put(record.key, (self.counts.get(record.key) or 0) + 1)

    def on_stream_time(self, now_ms: int) -> None:
        """Six hours of flights have passed."""
        self.report(now_ms, "stream time")
        self.arm_wall_clock()

    def on_wall_clock(self, now_ms: int) -> None:
        """Eight hours have passed without a report."""
        self.report(now_ms, "wall clock")
        self.arm_stream_time()

    def report(self, now_ms: int, asked_by: str) -> None:
        """Send a row for each airport that had departures."""
        for origin, departures in self.counts.all():
            self.context.forward(Record(origin, Report(departures, asked_by), now_ms))
            self.counts.delete(origin)

    def arm_stream_time(self) -> None:
        """Start the stream-time schedule anew."""
        self.context.schedule("6h", PunctuationType.STREAM_TIME, self.on_stream_time, name="flights")

    def arm_wall_clock(self) -> None:
        """Start the wall-clock schedule anew."""
        self.context.schedule("8h", PunctuationType.WALL_CLOCK_TIME, self.on_wall_clock, name="clock")


def build_topology() -> Topology:
    """Build the board of all airports."""
    builder = StreamsBuilder()
    (
        builder.stream("departures")
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
