"""Query 12, processing time windows: how many bids of a person arrived in each ten seconds."""

from rewindow import Count, StreamsBuilder, TimeWindows, Topology, until_window_closes


def build_topology() -> Topology:
    """Build the topology. The log's timestamp is the time of arrival, so no bid is late."""
    builder = StreamsBuilder()
    (
        builder.stream("bids-by-arrival")
        .group_by_key()
        .windowed_by(TimeWindows.of("10s", grace="0s"))
        .aggregate({"bids": Count()}, store="bids-of-window")
        .suppress(until_window_closes(), name="closed-windows")
        .to_stream()
        .to("q12")
    )
    return builder.build()
