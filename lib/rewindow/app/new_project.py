"""Create a project that runs: a feed, a job, a transcript test, a target, and sample data with late rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from rewindow.config.json_schema import KINDS, modeline, schema_text
from rewindow.errors import UsageError

_SUFFIXES = {".py.txt": ".py", "gitignore.txt": ".gitignore"}
"""Maps the end of a file's name in this package to its end in a new project. The ends differ so that tools ignore the files
in this package."""


class Example(StrEnum):
    """The projects that can be created."""

    WINDOWS = "windows"
    SESSIONS = "sessions"
    PROCESSOR = "processor"
    JOIN = "join"


@dataclass(frozen=True, slots=True)
class NewProject:
    """The names of the feed and the job of a new project, and the files that were written."""

    feed: str
    job: str
    files: list[str]


def create_project(root: Path, example: Example) -> NewProject:
    """Write the files of an example below a folder, and the schemas with which editors check its configuration.

    An existing file with the same content is kept. Raises `UsageError` (2), and writes nothing, if a file exists with other
    content.
    """
    wanted = dict(_files(resources.files("rewindow.app") / "examples" / example, ""))
    for kind in KINDS:
        wanted |= {path: modeline(kind) + text for path, text in wanted.items() if path.startswith(f"conf/{kind}s/")}
        wanted[f"conf/schemas/{kind}.json"] = schema_text(kind)
    others = [path for path, text in wanted.items() if (root / path).exists() and (root / path).read_text() != text]
    if others:
        raise UsageError(
            "project-files-differ",
            "{folder} has another {files}: choose an empty folder, or remove what is there",
            folder=root,
            files=", ".join(sorted(others)),
        )
    made = [path for path in sorted(wanted) if not (root / path).exists()]
    for path in made:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(wanted[path])
    (feed,), (job,) = ([path for path in wanted if path.startswith(f"conf/{kind}/")] for kind in ("feeds", "jobs"))
    return NewProject(Path(feed).stem, Path(job).stem, made)


def _files(folder: Traversable, path: str) -> list[tuple[str, str]]:
    files = []
    for entry in folder.iterdir():
        below = f"{path}{entry.name}"
        if entry.is_dir():
            files += _files(entry, f"{below}/")
        else:
            files.append((_own_name(below), entry.read_text(encoding="utf-8")))
    return files


def _own_name(path: str) -> str:
    for ours, own in _SUFFIXES.items():
        if path.endswith(ours):
            return path.removesuffix(ours) + own
    return path
