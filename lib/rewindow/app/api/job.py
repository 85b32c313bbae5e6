"""A job as it is configured and coded now: its topology, outputs and stores, and its status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewindow.app.api.show import joined, lines, table
from rewindow.app.listing import Entry
from rewindow.app.written_file import write_text
from rewindow.report.html import Html
from rewindow.report.topology_svg import topology_svg


@dataclass(frozen=True, slots=True)
class Graph:
    """The topology of a job, as `rewindow explain` describes it. Notebooks draw it."""

    title: str
    sub_topologies: tuple[Mapping[str, Any], ...] = field(repr=False)
    """Each with its ``sources``, ``nodes``, ``stores`` and ``execution``, in the order in which a run executes them."""

    @property
    def svg(self) -> str:
        """The drawing, as the text of an SVG file."""
        return topology_svg(self.title, self.sub_topologies)

    def write(self, path: str | Path) -> Path:
        """Write the drawing to an SVG file, replacing an earlier one. Raises `UsageError` (2) if it cannot be written."""
        write_text(Path(path), self.svg)
        return Path(path)

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it is configured and coded now."""

    name: str
    feed: str
    status: Entry = field(repr=False)
    """What `rewindow ls` says about it: ``status``, ``detail``, the last landing that it took, the number that wait."""
    topology: Graph = field(repr=False)
    outputs: Mapping[str, str]
    """The table of each output, by topic."""
    stores: Mapping[str, str]
    """The columns of each store, by name, each as name and type."""

    def _repr_html_(self) -> str:
        status = self.status
        said = f"Job {self.name} reads feed {self.feed}. Status: {status.status.value.replace('_', ' ')}."
        outputs = [{"output": topic, "table": name} for topic, name in self.outputs.items()]
        stores = [{"store": store, "columns": columns} for store, columns in self.stores.items()]
        shown = [table(title, rows) for title, rows in (("Outputs", outputs), ("Stores", stores)) if rows]
        return joined(lines([said, *([status.detail] if status.detail else [])]), *shown, Html(self.topology.svg))


def described_job(status: Entry, tables: Mapping[str, str], explained: Mapping[str, Any]) -> Job:
    """Return a job from what `explain` says about it. ``tables``: the table of each output, as its file names it."""
    parts = tuple(explained["sub_topologies"])
    return Job(
        explained["job"],
        explained["feed"],
        status,
        Graph(f"Topology of {explained['job']}", parts),
        {output["topic"]: tables[output["topic"]] for output in explained["outputs"]},
        {store["name"]: store["columns"] for part in parts for store in part["stores"]},
    )
