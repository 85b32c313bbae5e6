"""The values that the methods of a project return, except rows and runs. Notebooks display these values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rewindow.app.branches import Compared
from rewindow.app.result_lines import (
    as_assignments,
    compared_line,
    compared_rows,
    landed_lines,
    notes_on,
    shown_rows,
    verified_lines,
)
from rewindow.app.result_lines import readable as readable_row
from rewindow.app.written_file import write_text
from rewindow.contracts.instants import instant
from rewindow.control.health.entries import Entry
from rewindow.control.health.holds import Hold
from rewindow.control.ingest.landing_report import LandReport
from rewindow.control.verify import Verified
from rewindow.errors import visible_lines
from rewindow.report.report_facts import Report
from rewindow.report.topology_svg import topology_svg
from rewindow.tables.shared.diff import TableDiff

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST = 60
"""A value in a row is shown with at most this many characters."""


def table(title: str, rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Return rows of JSON values as an HTML table, with the columns that `rewindow` prints."""
    shown = [readable_row(row) for row in rows]
    names = list(dict.fromkeys(name for row in shown for name in row))
    return _table(title, names, [[row.get(name) for name in names] for row in shown])


def preview(title: str, rows: pa.Table) -> Markup:
    """Return rows of an Arrow table as an HTML table, with times in UTC."""
    import pyarrow as pa  # noqa: PLC0415 - only rows need it

    times = {field.name for field in rows.schema if pa.types.is_timestamp(field.type)}
    whole = rows.cast(
        pa.schema([field.with_type(pa.int64()) if field.name in times else field for field in rows.schema])
    )
    lines = [
        [
            instant(value) if name in times and value is not None else _short(value)
            for name, value in zip(rows.column_names, line.values(), strict=True)
        ]
        for line in whole.to_pylist()
    ]
    return _table(title, rows.column_names, lines)


def lines(sentences: Iterable[str]) -> Markup:
    """Return sentences as HTML, one per line."""
    return _each('<p style="margin:0;white-space:pre-wrap">{}</p>', sentences)


def _short(value: Any) -> Any:
    text = value.hex() if isinstance(value, bytes) else value
    return f"{text[: _LONGEST - 1]}…" if isinstance(text, str) and len(text) > _LONGEST else text


def _table(title: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Markup:
    caption = _each('<caption style="text-align:left;caption-side:top">{}</caption>', [title] if title else [])
    head = _each("<th>{}</th>", [name.strip() or " " for name in names])
    body = _each("<tr>{}</tr>", [_each("<td>{}</td>", ["" if v is None else str(v) for v in row]) for row in rows])
    return Markup("<table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(caption, head, body)


def _each(element: str, contents: Iterable[str]) -> Markup:
    """Return the HTML element once for each content. Contents are escaped unless they are markup."""
    template = Markup(element)  # noqa: S704 - the elements are literals of this module
    return Markup("").join(
        template.format(content if isinstance(content, Markup) else visible_lines(content)) for content in contents
    )


@dataclass(frozen=True, slots=True, repr=False)
class Outcome(Mapping[str, Any]):
    """The result of a command: its ``--json`` output as a mapping, and the sentences that it prints for people."""

    values_by_name: Mapping[str, Any]
    sentences: tuple[str, ...]

    def __getitem__(self, name: str) -> Any:
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)

    def __repr__(self) -> str:
        return visible_lines("\n".join(self.sentences))

    def _repr_html_(self) -> str:
        return lines(self.sentences)


def outcome_of_landing(feed: str, landed: LandReport) -> Outcome:
    """Return the result of `land`: its JSON values, and the sentences that it prints, warnings first."""
    warnings = (f"warning: {warning}" for warning in landed.warnings)
    return Outcome(landed.as_json(), (*warnings, *landed_lines(feed, landed)))


class Listing(tuple[Entry, ...]):
    """Entries in the order of their names, each with ``name``, ``status`` and the other values that `rewindow ls` shows."""

    __slots__ = ()

    @property
    def names(self) -> list[str]:
        """The names of the entries."""
        return [entry.name for entry in self]

    def __repr__(self) -> str:
        return ", ".join(f"{entry.name} ({_words(entry)})" for entry in self) or "none"

    def _repr_html_(self) -> str:
        rows = []
        for entry in self:
            rows.append(_row(entry.name, entry))
            rows += [_row(f"{entry.name} {branch.name}", branch) for branch in entry.branches]
        return table("", rows)


def _row(name: str, entry: Entry) -> dict[str, Any]:
    detail = (entry.detail or "").split("\n", maxsplit=1)[0]
    return {
        "name": name,
        "status": _words(entry),
        "landing": entry.epoch,
        "watermark_ms": entry.watermark_ms,
        "detail": detail,
    }


def _words(entry: Entry) -> str:
    return entry.status.value.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Graph:
    """The topology of a job, as `rewindow explain` describes it. Notebooks display it as a drawing."""

    title: str
    sub_topologies: tuple[Mapping[str, Any], ...] = field(repr=False)
    """The sub-topologies in the order in which a run executes them, each with ``sources``, ``nodes``, ``stores`` and
    ``execution``."""

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
    """A job as its files and code are now."""

    name: str
    feed: str
    status: Entry = field(repr=False)
    """What `rewindow ls` shows of the job: ``status``, ``detail``, the last landing that the job has processed, and the
    number of landings that wait."""
    topology: Graph = field(repr=False)
    outputs: Mapping[str, str]
    """The outputs, as a mapping from topic to table."""
    stores: Mapping[str, str]
    """The stores, as a mapping from the store's name to its columns: text of names and types."""

    def _repr_html_(self) -> str:
        status = self.status
        said = f"Job {self.name} reads feed {self.feed}. Status: {_words(status)}."
        outputs = [{"output": topic, "table": name} for topic, name in self.outputs.items()]
        stores = [{"store": store, "columns": columns} for store, columns in self.stores.items()]
        shown = [table(title, rows) for title, rows in (("Outputs", outputs), ("Stores", stores)) if rows]
        drawing = Markup(self.topology.svg)  # noqa: S704 - every text of it is escaped
        return Markup("").join([lines([said, *([status.detail] if status.detail else [])]), *shown, drawing])


def described_job(status: Entry, tables: Mapping[str, str], explained: Mapping[str, Any]) -> Job:
    """Return a job from its status and the values of `explain`. ``tables``: maps each topic to its table in the job's file."""
    parts = tuple(explained["sub_topologies"])
    return Job(
        explained["job"],
        explained["feed"],
        status,
        Graph(f"Topology of {explained['job']}", parts),
        {output["topic"]: tables[output["topic"]] for output in explained["outputs"]},
        {store["name"]: store["columns"] for part in parts for store in part["stores"]},
    )


@dataclass(frozen=True, slots=True, repr=False)
class Diff:
    """How the outputs of two branches differ, key by key, over the epochs that both replayed after their last common run."""

    job: str
    compared: Compared
    """What was compared. ``first`` and ``second`` are the branches, ``shared`` the last run that both have, and ``epochs`` a
    range of epoch numbers, empty if nothing was compared."""
    code: tuple[str, ...]
    """How the code of the branches' last runs differs. Empty if the outputs are equal."""

    @property
    def are_equal(self) -> bool:
        """Whether no output differs.

        False if a run on hold left nothing to compare; in that case, `rewindow diff` exits with 79.
        """
        return self.compared.are_equal

    @property
    def on_hold(self) -> Sequence[Hold]:
        """The first run on hold of each branch that has one, as JSON values.

        The rows of these runs and of later runs were not compared.
        """
        return self.compared.on_hold

    @property
    def outputs(self) -> Mapping[str, TableDiff]:
        """Maps each output to its diff: how many keys are equal, different or only on one branch, with samples."""
        return self.compared.diffs

    def __repr__(self) -> str:
        return "\n".join([compared_line(self.compared), *(as_assignments(row) for row in compared_rows(self.compared))])

    def _repr_html_(self) -> str:
        compared = self.compared
        if not compared.extent:
            return lines([compared_line(compared)])
        samples = [
            {
                "output": output,
                "key": as_assignments(key, key),
                compared.first: shown_rows(ours),
                compared.second: shown_rows(theirs),
            }
            for output, diff in compared.diffs.items()
            for key, ours, theirs in diff.samples
        ]
        notes = [
            f"{output}: {note}" for output, diff in compared.diffs.items() for note in notes_on(diff, "samples={}")
        ]
        if self.code:
            notes.append(f"{compared.first} and {compared.second} ran different code: {'; '.join(self.code)}")
        shown = table("Keys that differ", samples) if samples else Markup("")
        return lines([compared_line(compared)]) + table("Keys", compared_rows(compared)) + shown + lines(notes)


@dataclass(frozen=True, slots=True, repr=False)
class Verification:
    """Runs that were replayed in another layout, and the rows that differ between each run and its replay."""

    job: str
    checked: tuple[Verified, ...]

    @property
    def is_reproduced(self) -> bool:
        """Whether every replay gave the rows of its run."""
        return not any(replay.differences for replay in self.checked)

    def __repr__(self) -> str:
        return "\n".join(verified_lines(self.job, self.checked))

    def _repr_html_(self) -> str:
        return lines(verified_lines(self.job, self.checked))


@dataclass(frozen=True)
class JobReport:
    """The report on a job's runs, which `rewindow report` writes as a page."""

    facts: Report = field(repr=False)
    """All figures of the report, as plain values."""

    @property
    def verdict(self) -> list[str]:
        """The sentences at the top of the report. The first sentence is the headline."""
        return [sentence.text for sentence in self.facts.verdict]

    @cached_property
    def html(self) -> str:
        """The report as an HTML page, which needs no script, font or network."""
        from rewindow.report.page import page  # noqa: PLC0415 - only a page needs the templates

        return page(self.facts)

    def write(self, path: str | Path | None = None) -> Path:
        """Write the page, by default to ``report-JOB.html`` in the current folder, and return the path of the file.

        Replaces an existing file. Raises `UsageError` (2) if the file cannot be written.
        """
        file = Path(path or f"report-{self.facts.job}.html")
        write_text(file, self.html)
        return file

    def __repr__(self) -> str:
        return "\n".join(self.verdict)

    def _repr_html_(self) -> str:
        # The page is in a frame, so that its style sheet does not affect the notebook.
        frame = (
            '<iframe srcdoc="{}" style="width:100%;height:600px;border:1px solid #8888" sandbox="" title="{}"></iframe>'
        )
        return Markup(frame).format(self.html, f"Report of {self.facts.job}")  # noqa: S704 - a literal
