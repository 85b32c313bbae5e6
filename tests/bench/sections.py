"""Sections of pages that commands measure: a file of results beside the page keeps them, and the page is rendered from it.

`results.json` has for each section the command, the date, the commit, the machine, and its figures as lines of Markdown.
`python -m tests.measured` compares pages and files.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

FILE = "results.json"


def write_section(page: Path, name: str, command: str, text: str) -> None:
    """Keep the figures of a section, in place of earlier ones of the same name, and write it into its page."""
    from tests.bench.results import machine  # imports this module, too

    about = machine()
    kept = load(page)
    kept[name] = {
        "command": command,
        "date": about["date"],
        "commit": commit(),
        "machine": about["machine"],
        "lines": text.strip().splitlines(),
    }
    page.with_name(FILE).write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page.write_text(rendered(page), encoding="utf-8")


def load(page: Path) -> dict[str, Any]:
    """Return the results that are kept for a page, by the names of its sections."""
    file = page.with_name(FILE)
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return kept


def rendered(page: Path) -> str:
    """Return the page with its sections as the results say. A new section comes at the end."""
    text = page.read_text(encoding="utf-8")
    for name, result in load(page).items():
        begin, end = f"<!-- {name}: written by {result['command']} -->", f"<!-- end of {name} -->"
        measured = f"Commit {result['commit']}, {result['date']}."
        section = "\n".join([begin, "", *result["lines"], "", measured, "", end])
        old = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        text = old.sub(lambda _, new=section: new, text) if old.search(text) else f"{text.rstrip()}\n\n{section}\n"  # type: ignore[misc]
    return text


def commit() -> str:
    """Return the commit of the working tree, with a plus sign if files differ from it; ``unknown`` without Git."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    command = [git, "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+", "--abbrev=8", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
