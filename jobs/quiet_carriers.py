"""Alert when a carrier had fewer than 3 departures from an airport in an hour.

The key changes from the airport to (carrier, airport), so the records cross a repartition topic.
"""

from typing import NamedTuple

from rewindow import StreamsBuilder, TimeWindows, Topology, Windowed, until_window_closes


class CarrierAt(NamedTuple):
    """A carrier at an airport."""

    carrier: str
    origin: str


class Alert(NamedTuple):
    """The number of departures in ``[hour_start_ms, hour_end_ms)``, epoch milliseconds."""

    hour_start_ms: int
    hour_end_ms: int
    departures: int


def to_alert(hour: Windowed, departures: int) -> tuple[CarrierAt, Alert]:
    """Turn the final count of an hour into an alert."""
    return hour.key, Alert(hour.window.start_ms, hour.window.end_ms, departures)


def build_topology() -> Topology:
    """Build the topology. An hour without any departure has no count, and therefore no alert."""
    builder = StreamsBuilder()
    (
        builder.stream("departures")
        .where("dep_delay is not null")
        .group_by(lambda origin, flight: CarrierAt(flight.carrier, origin), key=CarrierAt)
        .windowed_by(TimeWindows.of("1h", grace="30m"))
        .count(store="departures-per-carrier")
        .suppress(until_window_closes(), name="closed-carrier-hours")
        .to_stream()
        .where("value < 3")
        .map(to_alert)
        .to("quiet-carriers")
    )
    return builder.build()
