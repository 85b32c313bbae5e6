"""Add to each flight the weather at its airport at that time: two topics, read in timestamp order (KIP-353)."""

from typing import NamedTuple

from rewindow import Processor, ProcessorContext, Record, StreamsBuilder, Topology, key_value_store


class FlightWeather(NamedTuple):
    """A flight with the latest weather report before its scheduled time; nulls before the first report."""

    carrier: str
    flight: int
    dep_delay: float | None
    temp: float | None
    wind_speed: float | None
    precip: float | None
    weather_age_ms: int | None


class Weather(NamedTuple):
    """An hourly report: Fahrenheit, miles per hour, inches, and the time in epoch milliseconds."""

    temp: float | None
    wind_speed: float | None
    precip: float | None
    reported_ms: int


class KeepWeather(Processor):
    """Store the latest report of each airport."""

    def init(self, context: ProcessorContext) -> None:
        """Get the store."""
        self.weather = context.store("weather-now")

    def process(self, record: Record) -> None:
        """Store a report."""
        report = record.value
        self.weather.put(record.key, Weather(report.temp, report.wind_speed, report.precip, record.timestamp or 0))


class AddWeather(Processor):
    """Add the stored report to each flight."""

    def init(self, context: ProcessorContext) -> None:
        """Get the store."""
        self.context = context
        self.weather = context.store("weather-now")

    def process(self, record: Record) -> None:
        """Look up the report and forward the flight with it."""
        flight, weather = record.value, self.weather.get(record.key)
        found = (None,) * 4
        if weather is not None:
            found = (weather.temp, weather.wind_speed, weather.precip, (record.timestamp or 0) - weather.reported_ms)
        self.context.forward(
            record.with_value(FlightWeather(flight.carrier, flight.flight, flight.dep_delay, *found)),
        )


def build_topology() -> Topology:
    """Build the topology. Weather is read first, so at equal timestamps a report precedes the flights."""
    builder = StreamsBuilder()
    weather = key_value_store("weather-now", key=str, value=Weather)
    builder.stream("weather").process(KeepWeather, name="keep-weather", stores=[weather])
    (
        builder.stream("departures")
        .process(AddWeather, name="add-weather", stores=["weather-now"], key=str, value=FlightWeather)
        .to("flight-weather")
    )
    return builder.build()
