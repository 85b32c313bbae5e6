"""Alert when a carrier had fewer than 3 departures from an airport in an hour. Re-keyed, so it crosses a repartition."""

from typing import NamedTuple

from rewindow import StreamsBuilder, TimeWindows, Topology, Windowed, until_window_closes


class CarrierAt(NamedTuple):
    """A carrier at an airport."""

    carrier: str
    origin: str


class Alert(NamedTuple):
    """An hour in which it was quiet, ``[hour_start_ms, hour_end_ms)``."""

    hour_start_ms: int
    hour_end_ms: int
    departures: int


def to_alert(hour: Windowed, departures: int) -> tuple[CarrierAt, Alert]:
    """Make the alert of an hour's final count."""
    return hour.key, Alert(hour.window.start_ms, hour.window.end_ms, departures)


def build_topology() -> Topology:
    """An hour without a single departure has no count, so no alert: there is nothing that could tell of it."""
    builder = StreamsBuilder()
    (
        builder.stream("departures")
        .filter(lambda _origin, flight: flight.dep_delay is not None)
        .group_by(lambda origin, flight: CarrierAt(flight.carrier, origin), key=CarrierAt)
        .windowed_by(TimeWindows.of("1h", grace="30m"))
        .count(store="departures-per-carrier")
        .suppress(until_window_closes(), name="closed-carrier-hours")
        .to_stream()
        .filter(lambda _hour, departures: departures < 3)
        .map(to_alert)
        .to("quiet-carriers")
    )
    return builder.build()
