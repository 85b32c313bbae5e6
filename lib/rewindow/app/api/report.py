"""A job's report as a value: shown in a notebook, or written as a page."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from rewindow.app.written_file import write_text
from rewindow.report.facts import Report
from rewindow.report.html import Html, tag
from rewindow.report.page import page


@dataclass(frozen=True)
class JobReport:
    """The report of a job's runs, which `rewindow report` writes as a page."""

    facts: Report = field(repr=False)
    """All figures, as plain values."""

    @property
    def verdict(self) -> list[str]:
        """The sentences at its top. The first is the headline."""
        return [sentence.text for sentence in self.facts.verdict]

    @cached_property
    def html(self) -> str:
        """The page. It needs no script, no font and no network."""
        return page(self.facts)

    def write(self, path: str | Path | None = None) -> Path:
        """Write the page, by default as ``report-JOB.html`` in this folder, and return its path.

        An earlier one is replaced. Raises `UsageError` (2) if the file cannot be written.
        """
        file = Path(path or f"report-{self.facts.job}.html")
        write_text(file, self.html)
        return file

    def __repr__(self) -> str:
        return "\n".join(self.verdict)

    def _repr_html_(self) -> str:
        # The page has a style sheet of its own, which must not reach the notebook.
        style = "width:100%;height:600px;border:1px solid #8888"
        return tag("iframe", Html(""), srcdoc=self.html, style=style, sandbox="", title=f"Report of {self.facts.job}")
