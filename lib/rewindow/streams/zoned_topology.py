"""Give the windows in local time of a topology the clocks of their zones.

User code names a zone. Whoever runs the topology reads the zone's clock, once, and binds it here. So all tasks of a run, on any
machine, have the same clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass, replace
from typing import Any

from rewindow.streams.nodes import Node, ProcessorNode
from rewindow.streams.topology import Topology
from rewindow.streams.windows.calendar import CalendarWindows
from rewindow.streams.windows.zone_table import ZoneTable


def zones_of(topology: Topology) -> dict[str, str]:
    """Return the zones that the windows of a topology name, each with the name of the first node that does."""
    zones: dict[str, str] = {}
    for node in topology.nodes.values():
        if (windows := _calendar(node)) is not None:
            zones.setdefault(windows.zone, node.name)
    return zones


def with_clocks(topology: Topology, zone_tables: Mapping[str, ZoneTable]) -> Topology:
    """Return the same topology, whose windows in local time have the clocks of their zones. ``zone_tables``: by zone."""
    nodes = {name: _node_with_clock(node, zone_tables) for name, node in topology.nodes.items()}
    stores = {
        name: replace(store, calendar=_bound(store.calendar, zone_tables))
        if isinstance(store.calendar, CalendarWindows)
        else store
        for name, store in topology.stores.items()
    }
    return replace(topology, nodes=nodes, stores=stores)


def load_with_clocks(load_topology: Callable[[], Topology], zone_tables: Mapping[str, ZoneTable]) -> Topology:
    """Return the result of a function that builds a topology, with the clocks of its zones."""
    return with_clocks(load_topology(), zone_tables)


def newest_ends(topology: Topology, newest_starts: Mapping[str, int]) -> dict[str, int]:
    """Return for each zone the latest end of a window that a store has had; 0 if it has had none.

    ``newest_starts`` has, by store, the latest start of a window that was put. The topology must have the clocks of its zones.
    """
    newest = dict.fromkeys(zones_of(topology), 0)
    for name, store in topology.stores.items():
        if isinstance(store.calendar, CalendarWindows) and newest_starts.get(name, -1) >= 0:
            zone = store.calendar.zone
            newest[zone] = max(newest[zone], store.calendar.end_of(newest_starts[name]))
    return newest


def _calendar(node: Node) -> CalendarWindows | None:
    supplier: Any = node.supplier if isinstance(node, ProcessorNode) else None
    windows = getattr(supplier, "windows", None) if is_dataclass(supplier) else None
    return windows if isinstance(windows, CalendarWindows) else None


def _node_with_clock(node: Node, zone_tables: Mapping[str, ZoneTable]) -> Node:
    windows = _calendar(node)
    if windows is None or not isinstance(node, ProcessorNode):
        return node
    supplier: Any = node.supplier
    return replace(node, supplier=replace(supplier, windows=_bound(windows, zone_tables)))


def _bound(windows: CalendarWindows, zone_tables: Mapping[str, ZoneTable]) -> CalendarWindows:
    return windows.bound_to(zone_tables[windows.zone])
