"""Each flight with the weather of its airport at that time: two topics of one task, in the order of their timestamps."""

from typing import NamedTuple

from rewindow import Processor, ProcessorContext, Record, StreamsBuilder, Topology, key_value_store


class FlightWeather(NamedTuple):
    """A flight, and the newest weather that was known at its scheduled time; null before the first report."""

    carrier: str
    flight: int
    dep_delay: float | None
    temp: float | None
    wind_speed: float | None
    precip: float | None
    weather_age_ms: int | None


class Weather(NamedTuple):
    """An hourly report (Fahrenheit, miles an hour, inches) and its time (epoch ms)."""

    temp: float | None
    wind_speed: float | None
    precip: float | None
    reported_ms: int


class KeepWeather(Processor):
    """Keeps the newest report of each airport."""

    def init(self, context: ProcessorContext) -> None:
        """Find the store."""
        self.weather = context.store("weather-now")

    def process(self, record: Record) -> None:
        """Keep it."""
        report = record.value
        self.weather.put(record.key, Weather(report.temp, report.wind_speed, report.precip, record.timestamp or 0))


class AddWeather(Processor):
    """Adds the kept report to each flight."""

    def init(self, context: ProcessorContext) -> None:
        """Find the store."""
        self.context = context
        self.weather = context.store("weather-now")

    def process(self, record: Record) -> None:
        """Look up and forward."""
        flight, weather = record.value, self.weather.get(record.key)
        found = (None,) * 4
        if weather is not None:
            found = (weather.temp, weather.wind_speed, weather.precip, (record.timestamp or 0) - weather.reported_ms)
        self.context.forward(
            record.with_value(FlightWeather(flight.carrier, flight.flight, flight.dep_delay, *found)),
        )


def build_topology() -> Topology:
    """Weather is read first: at the same time it comes before the flights."""
    builder = StreamsBuilder()
    weather = key_value_store("weather-now", key=str, value=Weather)
    builder.stream("weather").process(KeepWeather, name="keep-weather", stores=[weather])
    (
        builder.stream("departures")
        .process(AddWeather, name="add-weather", stores=["weather-now"], key=str, value=FlightWeather)
        .to("flight-weather")
    )
    return builder.build()
