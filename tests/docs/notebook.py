"""The notebook of the site: execute it, compare it with what it shows, and write its page.

``python -m tests.docs.notebook`` executes docs/notebook.ipynb in a new project and stores its outputs; then
``python -m tests.docs`` writes the page. With ``--check`` nothing is written, and an output that differs is an error.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.api.shop import create_shop
from tests.docs.blocks import DOCS

NOTEBOOK = DOCS / "notebook.ipynb"
_SECONDS = 300
HEAD = """\
<!-- python -m tests.docs writes this page from notebook.ipynb -->
"""
_VARIES = re.compile(r"0x[0-9a-f]+|/tmp/\S+")


def page() -> str:
    """Return the notebook as a page: its texts, its code, and what each cell shows."""
    parts = [HEAD]
    for one in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        text = "".join(one["source"])
        parts += [text] if one["cell_type"] == "markdown" else [f"```python\n{text}\n```", *_shown(one["outputs"])]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _shown(stored: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for output in stored:
        data = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
        if "image/svg+xml" in data:
            yield _box(data["image/svg+xml"])
        elif "text/html" in data:
            yield _box(data["text/html"])
        else:
            text = data.get("text/plain") or "".join(output.get("text", output.get("traceback", "")))
            yield f"```text\n{text.rstrip()}\n```"


def _box(markup: str) -> str:
    """Return markup as a block that Markdown leaves alone, and that scrolls on a narrow screen."""
    return f'<div class="output">{" ".join(markup.split(chr(10)))}</div>'


def execute(folder: Path) -> Any:
    """Execute the notebook in a new project below a folder, in a kernel of its own; return it with its new outputs."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    root = create_shop(folder / "shop")
    NotebookClient(notebook, timeout=_SECONDS, resources={"metadata": {"path": str(root)}}).execute()
    for one in notebook.cells:
        one.metadata.pop("execution", None)  # the times
    return notebook


def outputs(notebook: Mapping[str, Any]) -> list[list[Any]]:
    """Return what each cell shows, without what differs from one execution to the next."""
    return [
        json.loads(_VARIES.sub("...", json.dumps([_joined(output) for output in one.get("outputs", ())])))
        for one in notebook["cells"]
    ]


def _joined(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return an output with its texts as one string each; files keep them as lists of lines."""
    shown = {name: value for name, value in output.items() if name in ("data", "text", "ename", "evalue", "traceback")}
    if "data" in shown:
        shown["data"] = {kind: "".join(text) for kind, text in shown["data"].items()}
    return {name: "".join(value) if isinstance(value, list) else value for name, value in shown.items()}


def main(*, is_check: bool) -> int:
    """Execute the notebook; 1 if it shows something else than is stored and nothing may be written."""
    import nbformat

    with tempfile.TemporaryDirectory() as folder:
        executed = execute(Path(folder))
    stored = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    if not is_check:
        nbformat.write(executed, NOTEBOOK)
        return 0
    for one, now, then in zip(executed.cells, outputs(executed), outputs(stored), strict=True):
        if now != then:
            sys.stderr.write(f"this cell shows something else:\n{one.source}\nnow: {now}\nstored: {then}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(is_check="--check" in sys.argv[1:]))
