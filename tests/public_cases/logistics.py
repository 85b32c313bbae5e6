"""Where each order is, how far from its destination, and for how long."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewindow import StreamsBuilder, Topology
from tests.public_cases.geo_distance import kilometres

SOURCE = "https://github.com/confluentinc/kafka-tutorials/tree/6225e7c1957911520391c7fe0e857138638714fe/_includes/tutorials/logistics"
INPUT = {
    "orders": """
{"ID": "67", "NAME": "Penelope Coin", "EMAIL": "pennycoin@email.com", "ADDRESS": "183 Maple Drive", "DEST_LAT": 37.596484, "DEST_LONG": -122.488516, "ORDER_TOTAL": 147.52}
{"ID": "93", "NAME": "Theodore Bear", "EMAIL": "teddyb@email.com", "ADDRESS": "68 El Camino Real", "DEST_LAT": 37.531003, "DEST_LONG": -122.400401, "ORDER_TOTAL": 74.97}
{"ID": "184", "NAME": "Jack Pepper", "EMAIL": "pepper.jack@email.com", "ADDRESS": "8299 Skyline Drive", "DEST_LAT": 37.523939, "DEST_LONG": -122.285065, "ORDER_TOTAL": 385.01}
""",
    "vehicles": """
{"ID": "0", "ORDER_ID": "184", "STATE": "WAREHOUSE", "LAT": 37.509757, "LONG": -122.263389, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 197.3, "TIRE_PRESSURE": 34.8}
{"ID": "0", "ORDER_ID": "184", "STATE": "EN ROUTE", "LAT": 37.541382, "LONG": -122.284036, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 197.3, "TIRE_PRESSURE": 34.8}
{"ID": "0", "ORDER_ID": "184", "STATE": "EN ROUTE", "LAT": 37.551639, "LONG": -122.290937, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 197.3, "TIRE_PRESSURE": 34.8}
{"ID": "0", "ORDER_ID": "184", "STATE": "EN ROUTE", "LAT": 37.543293, "LONG": -122.301903, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 197.2, "TIRE_PRESSURE": 34.8}
{"ID": "0", "ORDER_ID": "184", "STATE": "EN ROUTE", "LAT": 37.53893, "LONG": -122.301108, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 198.3, "TIRE_PRESSURE": 34.8}
{"ID": "0", "ORDER_ID": "184", "STATE": "EN ROUTE", "LAT": 37.53492, "LONG": -122.297403, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 198.2, "TIRE_PRESSURE": 34.8}
{"ID": "0", "ORDER_ID": "184", "STATE": "EN ROUTE", "LAT": 37.529016, "LONG": -122.290019, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 198.3, "TIRE_PRESSURE": 34.8}
{"ID": "0", "ORDER_ID": "184", "STATE": "DELIVERED", "LAT": 37.523939, "LONG": -122.285065, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 197.8, "TIRE_PRESSURE": 34.8}
{"ID": "1", "ORDER_ID": "67", "STATE": "EN ROUTE", "LAT": 37.45559, "LONG": -122.275563, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 196.3, "TIRE_PRESSURE": 34.8}
{"ID": "1", "ORDER_ID": "67", "STATE": "EN ROUTE", "LAT": 37.471054, "LONG": -122.322917, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 196.7, "TIRE_PRESSURE": 34.8}
{"ID": "1", "ORDER_ID": "67", "STATE": "EN ROUTE", "LAT": 37.500196, "LONG": -122.379183, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 196.5, "TIRE_PRESSURE": 34.8}
{"ID": "1", "ORDER_ID": "67", "STATE": "EN ROUTE", "LAT": 37.531003, "LONG": -122.400401, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 196.6, "TIRE_PRESSURE": 34.8}
{"ID": "1", "ORDER_ID": "67", "STATE": "EN ROUTE", "LAT": 37.560702, "LONG": -122.458749, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 196.4, "TIRE_PRESSURE": 34.8}
{"ID": "1", "ORDER_ID": "67", "STATE": "DELIVERED", "LAT": 37.596484, "LONG": -122.488098, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 196.9, "TIRE_PRESSURE": 34.8}
{"ID": "2", "ORDER_ID": "93", "STATE": "EN ROUTE", "LAT": 36.85559, "LONG": -121.575563, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 198.7, "TIRE_PRESSURE": 34.9}
{"ID": "2", "ORDER_ID": "93", "STATE": "EN ROUTE", "LAT": 36.871054, "LONG": -122.722917, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 198.9, "TIRE_PRESSURE": 34.9}
{"ID": "2", "ORDER_ID": "93", "STATE": "EN ROUTE", "LAT": 36.900196, "LONG": -122.979183, "WAREHOUSE_LAT": 37.509757, "WAREHOUSE_LONG": -122.263389, "TEMPERATURE": 198.7, "TIRE_PRESSURE": 34.9}
""",
}
LOGS = {
    "orders": {"key": "ID", "timestamp": "tests.public_cases.times:first"},
    "vehicles": {"key": "ORDER_ID", "timestamp": "tests.public_cases.times:second"},
}
EXPECTED = {
    "order_tracker": """
{"ORDER_ID": "93", "VEHICLE_ID": "2", "LAT": 36.900196, "LONG": -122.979183, "DEST_LAT": 37.531003, "DEST_LONG": -122.400401, "DISTANCE_FROM_DESTINATION": 86.87, "ETA_SECONDS": 252.32}
{"ORDER_ID": "67", "VEHICLE_ID": "1", "LAT": 37.596484, "LONG": -122.488098, "DEST_LAT": 37.596484, "DEST_LONG": -122.488516, "DISTANCE_FROM_DESTINATION": 0.04, "ETA_SECONDS": 0.17}
{"ORDER_ID": "184", "VEHICLE_ID": "0", "LAT": 37.523939, "LONG": -122.285065, "DEST_LAT": 37.523939, "DEST_LONG": -122.285065, "DISTANCE_FROM_DESTINATION": 0.0, "ETA_SECONDS": 0.0}
""",
}
LAST_OF = "ORDER_ID"


class Position(NamedTuple):
    VEHICLE_ID: str
    LAT: float
    LONG: float
    DEST_LAT: float
    DEST_LONG: float
    DISTANCE_FROM_DESTINATION: float
    ETA_SECONDS: float


def position(vehicle: Any, order: Any) -> Position:
    here, there = (vehicle.LAT, vehicle.LONG), (order.DEST_LAT, order.DEST_LONG)
    degrees = max(abs(one - other) for one, other in zip(here, there, strict=True))
    return Position(vehicle.ID, *here, *there, round(kilometres(here, there), 2), round(degrees / 0.005 * 2, 2))


def build_topology() -> Topology:
    builder = StreamsBuilder()
    orders = builder.table("orders", store="order-rows")
    positions = builder.stream("vehicles").join(orders, position)
    positions.to_table(store="positions").to_stream().to("order_tracker")
    return builder.build()
