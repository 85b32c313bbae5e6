"""All reports, by subject. `python -m tests.reported` writes README.md from them."""

from __future__ import annotations

from pathlib import Path

from tests.reported import csv_files, delta_tables, json_files, parquet_files, streams, times
from tests.reported.report import Report

SUBJECTS: dict[str, tuple[Report, ...]] = {
    "CSV files": csv_files.REPORTS,
    "JSON lines": json_files.REPORTS,
    "Parquet files": parquet_files.REPORTS,
    "Delta tables": delta_tables.REPORTS,
    "Intervals, times, bytes and configuration": times.REPORTS,
    "Streams and tables": streams.REPORTS,
}
REPORTS = tuple(report for reports in SUBJECTS.values() for report in reports)
PAGE = Path(__file__).parent / "README.md"
_HEAD = """\
# Reported bugs

Bugs that users of other projects reported in public, as small inputs of rewindow. A report gave the subject, the input and
what was wrong. What rewindow does with such an input follows from its own pages, and was written down before the input was
tried. Each report has several inputs: another format, several calls, another type, cut into runs. `test_reported.py` plays
all of them. `python -m tests.reported` writes this page.

"""


def page() -> str:
    """Return the text of README.md."""
    cases = sum(len(report.cases) for report in REPORTS)
    parts = [f"{_HEAD}{len(REPORTS)} reports, {cases} inputs.\n"]
    for subject, reports in SUBJECTS.items():
        parts.append(
            f"\n## {subject}\n\n| report | what was wrong there | what rewindow does | inputs |\n| --- | --- | --- | --- |\n"
        )
        parts += [f"| [{one.number}]({one.url}) | {one.there} | {one.here} | {len(one.cases)} |\n" for one in reports]
    return "".join(parts)
