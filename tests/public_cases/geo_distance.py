"""The distance from a customer to the repair center of the state."""

from __future__ import annotations

from math import asin, cos, radians, sin, sqrt
from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/geo-distance/ksql/code"
INPUT = {
    "repair_center": """
{"STATE": "NSW", "LONG": 151.1169, "LAT": -33.863}
{"STATE": "VIC", "LONG": 145.1549, "LAT": -37.9389}
""",
    "phone_event_raw": """
{"CUSTOMER_NAME": "Lindsey", "PHONE_MODEL": "iPhone 11 Pro", "EVENT": "dropped", "STATE": "NSW", "LONG": 151.25664, "LAT": -33.85995}
{"CUSTOMER_NAME": "Debbie", "PHONE_MODEL": "Samsung Note 20", "EVENT": "water", "STATE": "NSW", "LONG": 151.24504, "LAT": -33.8964}
""",
}
LOGS = {
    "repair_center": {"key": "STATE", "timestamp": "tests.public_cases.times:first"},
    "phone_event_raw": {"key": "STATE", "timestamp": "tests.public_cases.times:second"},
}
EXPECTED = {
    "INSURANCE_EVENT_WITH_REPAIR_INFO": """
{"STATE": "NSW", "IEV_CUSTOMER_NAME": "Lindsey", "IEV_PHONE_MODEL": "iPhone 11 Pro", "IEV_EVENT": "dropped", "IEV_LONG": 151.25664, "IEV_LAT": -33.85995, "RCT_REPAIR_STATE": "NSW", "RCT_LONG": 151.1169, "RCT_LAT": -33.863}
{"STATE": "NSW", "IEV_CUSTOMER_NAME": "Debbie", "IEV_PHONE_MODEL": "Samsung Note 20", "IEV_EVENT": "water", "IEV_LONG": 151.24504, "IEV_LAT": -33.8964, "RCT_REPAIR_STATE": "NSW", "RCT_LONG": 151.1169, "RCT_LAT": -33.863}
""",
    "INSURANCE_EVENT_DIST": """
{"STATE": "NSW", "IEV_CUSTOMER_NAME": "Lindsey", "DIST_TO_REPAIRER_KM": 12.907325150628191}
{"STATE": "NSW", "IEV_CUSTOMER_NAME": "Debbie", "DIST_TO_REPAIRER_KM": 12.398568134716221}
""",
}


EARTH_RADIUS_KM = 6371


class Enriched(NamedTuple):
    IEV_CUSTOMER_NAME: str
    IEV_PHONE_MODEL: str
    IEV_EVENT: str
    IEV_LONG: float
    IEV_LAT: float
    RCT_REPAIR_STATE: str
    RCT_LONG: float
    RCT_LAT: float


class Distance(NamedTuple):
    IEV_CUSTOMER_NAME: str
    DIST_TO_REPAIRER_KM: float


def enriched(state: str, event: Any, center: Any) -> Enriched:
    return Enriched(
        event.CUSTOMER_NAME, event.PHONE_MODEL, event.EVENT, event.LONG, event.LAT, state, center.LONG, center.LAT
    )


def kilometres(here: tuple[float, float], there: tuple[float, float]) -> float:
    """Return the length of the great circle between two latitudes and longitudes, by the haversine formula."""
    (latitude, longitude), (to_latitude, to_longitude) = here, there
    north = sin(radians(to_latitude - latitude) / 2) ** 2
    east = sin(radians(to_longitude - longitude) / 2) ** 2
    east = east * cos(radians(latitude)) * cos(radians(to_latitude))
    return 2 * EARTH_RADIUS_KM * asin(sqrt(north + east))


def distance(event: Enriched) -> Distance:
    here, there = (event.IEV_LAT, event.IEV_LONG), (event.RCT_LAT, event.RCT_LONG)
    return Distance(event.IEV_CUSTOMER_NAME, kilometres(here, there))


def build_topology() -> Topology:
    builder = StreamsBuilder()
    centers = builder.table("repair_center", store="centers")
    events = builder.stream("phone_event_raw").join(centers, enriched, with_key=True)
    events.to("INSURANCE_EVENT_WITH_REPAIR_INFO")
    events.map_values(distance).to("INSURANCE_EVENT_DIST")
    return builder.build()
