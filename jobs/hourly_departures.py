"""Departures and mean delay (minutes) of each airport and hour: one final row each, 30 minutes of grace."""

from rewindow import Count, Mean, StreamsBuilder, TimeWindows, Topology, until_window_closes


def build_topology() -> Topology:
    """Cancelled flights carry no delay; they are no departures."""
    builder = StreamsBuilder()
    (
        builder.stream("departures")
        .filter(lambda _origin, flight: flight.dep_delay is not None)
        .group_by_key()
        .windowed_by(TimeWindows.of("1h", grace="30m"))
        .aggregate({"departures": Count(), "mean_delay": Mean("dep_delay")}, store="departures-per-hour")
        .suppress(until_window_closes(), name="closed-hours")
        .to_stream()
        .to("hourly-departures")
    )
    return builder.build()
