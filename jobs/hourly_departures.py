"""Departures and mean delay (minutes) per airport and hour: one final row each, with 30 minutes of grace.

Every step is an expression or a built-in aggregate, so the job runs in vectorized execution.
"""

from rewindow import Count, Mean, StreamsBuilder, TimeWindows, Topology, until_window_closes


def build_topology() -> Topology:
    """Build the topology. A cancelled flight has no delay and does not count as a departure."""
    builder = StreamsBuilder()
    (
        builder.stream("departures")
        .where("dep_delay is not null")
        .group_by_key()
        .windowed_by(TimeWindows.of("1h", grace="30m"))
        .aggregate({"departures": Count(), "mean_delay": Mean("dep_delay")}, store="departures-per-hour")
        .suppress(until_window_closes(), name="closed-hours")
        .to_stream()
        .to("hourly-departures")
    )
    return builder.build()
