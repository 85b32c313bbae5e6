"""Suites that pytest runs: laws with a thousand examples each, the corpus of bad input, corrupted files.

A case is an example that passed according to Hypothesis, a case that a test counted itself (the property ``cases``), or a
test.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.crash.results import ROOT
from tests.crash.settings import Figures, Settings

PROFILE = "thousand"
_TEST = re.compile(r"^(tests/\S+\.py)::(\w+):$")
_PASSED = re.compile(r"(\d+) passing")


@dataclass(frozen=True)
class Selection:
    """Tests selected by file and by parts of their names. ``quick`` uses only the first file."""

    files: tuple[str, ...]
    named: str = ""


SELECTIONS = {
    "chunking": Selection(
        (
            "tests/properties/test_cuts.py",
            "tests/properties/test_typed_cuts.py",
            "tests/properties/test_window_kinds.py",
            "tests/properties/test_suppress.py",
            "tests/properties/test_legacy_forms.py",
            "tests/properties/test_call_ids.py",
            "tests/properties/test_watermarks.py",
        ),
        "difference or cut or change or final or sees",
    ),
    "layouts": Selection(
        (
            "tests/properties/test_layout.py",
            "tests/properties/test_repartitions.py",
            "tests/properties/test_spill.py",
            "tests/properties/test_driver.py",
        )
    ),
    "order": Selection(("tests/properties/test_order.py",)),
    "corpus": Selection(("tests/bad_input",), "not flip and not planted"),
    "corruption": Selection(("tests/bad_input/test_flips.py",)),
}


def suite(name: str, settings: Settings) -> Figures:
    """Run a selection. ``quick``: with as many examples as `make test`."""
    figures = Figures(name)
    selection = SELECTIONS[name]
    with tempfile.TemporaryDirectory(prefix="rewindow-crash-") as folder:
        report = Path(folder) / "report.xml"
        command = [
            *(sys.executable, "-m", "pytest", "-q", "--hypothesis-show-statistics", "--hypothesis-seed=0"),
            *("-p", "no:cacheprovider", "-o", "junit_family=xunit1", f"--junit-xml={report}"),
            *(("-k", selection.named) if selection.named else ()),
            *(selection.files[:1] if settings.quick else selection.files),
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
        if not settings.quick:
            environment["HYPOTHESIS_PROFILE"] = PROFILE
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if not report.exists():
            message = f"{' '.join(command)} ended with {done.returncode}: {(done.stdout + done.stderr)[-1000:]}"
            raise RuntimeError(message)
        passed = examples(done.stdout)
        for test in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest just wrote it
            count(test, passed, figures)
    figures.more = {"tests": len(passed)} if passed else {}
    for failure in figures.failures:
        settings.say(failure)
    return figures


def examples(printed: str) -> Mapping[tuple[str, str], int]:
    """Return the number of passed examples of each test, by file and name, from Hypothesis' statistics."""
    passed: dict[tuple[str, str], int] = {}
    test: tuple[str, str] | None = None
    for line in printed.splitlines():
        if begins := _TEST.match(line):
            test = begins[1], begins[2]
        elif test and (found := _PASSED.search(line)):
            passed[test] = passed.get(test, 0) + int(found[1])
    return passed


def count(test: ET.Element, passed: Mapping[tuple[str, str], int], figures: Figures) -> None:
    """Count a test's cases. A failed test counts as wrong, a skipped one as not reached."""
    name = f"{test.get('file')}::{test.get('name')}"
    said = {child.tag: (child.get("message") or "").partition("\n")[0] for child in test}
    if "failure" in said or "error" in said:
        figures.count("wrong: " + (said.get("failure") or said.get("error") or ""), name)
        return
    if "skipped" in said:
        figures.count("not reached: " + said["skipped"], name)
        return
    own = [int(one.get("value", "0")) for one in test.iter("property") if one.get("name") == "cases"]
    figures.cases += own[0] if own else passed.get((test.get("file", ""), test.get("name", "")), 1)
