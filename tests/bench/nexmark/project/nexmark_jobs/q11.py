"""Query 11, user sessions: how many bids a person made in each session, which ends after ten seconds without a bid."""

from rewindow import Count, SessionWindows, StreamsBuilder, Topology, until_window_closes


def build_topology() -> Topology:
    """Build the topology."""
    builder = StreamsBuilder()
    (
        builder.stream("bids-by-bidder")
        .group_by_key()
        .windowed_by(SessionWindows.of("10s", grace="1s"))
        .aggregate({"bids": Count()}, store="bids-of-session")
        .suppress(until_window_closes(), name="closed-sessions")
        .to_stream()
        .to("q11")
    )
    return builder.build()
