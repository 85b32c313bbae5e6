"""Play the transcripts of a project.

Each case in their YAML files is played twice: once as a whole, and once with a restart between any two steps.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rewindow.errors import ConfigError, RewindowError
from rewindow.testing.transcript import TranscriptError, check
from rewindow.testing.transcript_files import load_each

_FOLDER = "tests"
_MARK = "transcript:"


@dataclass(frozen=True, slots=True)
class Played:
    """A played case. ``failure`` is None if it passed. ``cut`` says whether tasks were restored between any two steps.

    An invalid case is not played and fails once. If it has no name, or is not YAML, its name is like ``document 2``.
    """

    file: str
    case: str
    cut: bool
    failure: str | None

    def as_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def play_all(root: Path, paths: Sequence[Path] = ()) -> Iterator[Played]:
    """Play the cases of some files, by default of all files with transcripts below ``tests/`` of a project.

    Raises `ConfigError` (78) if there are no such files.
    """
    files = [Path(path) for path in paths] or _with_transcripts(root / _FOLDER)
    if not files:
        raise ConfigError(
            "transcripts-missing",
            "{folder} has no YAML files with a transcript: write one, or name files",
            folder=root / _FOLDER,
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))  # topologies are in modules of the project
    for file in files:
        shown = str(file.relative_to(root)) if file.is_relative_to(root) else str(file)
        if not file.is_file():
            raise ConfigError(
                "transcript-file-missing", "{file} is not a file: name a YAML file with transcripts", file=shown
            )
        for name, case in load_each(file):
            if isinstance(case, ConfigError):
                yield Played(shown, name, cut=False, failure=str(case).removeprefix(str(file)).lstrip(":, "))
                continue
            for cut in (False, True):
                yield Played(shown, name, cut, _failure_of(case, cut=cut))


def _failure_of(case: Any, *, cut: bool) -> str | None:
    try:
        check(case, cut=cut)
    except TranscriptError as error:
        return str(error)
    except RewindowError as error:  # for example, the topology does not exist
        return str(error) if str(error).startswith(f"{case.name}: ") else f"{case.name}: {error}"
    return None


def _with_transcripts(folder: Path) -> list[Path]:
    files = sorted(path for pattern in ("*.yaml", "*.yml") for path in folder.rglob(pattern))
    return [file for file in files if any(line.startswith(_MARK) for line in file.read_text().splitlines())]
