"""What executors and servers elsewhere import: rewindow as a wheel, the project's code, zips of one's own.

Spark puts a ``.zip`` on its workers' import path and a ``.whl`` beside it, unread; a wheel is a zip, so it travels
under that name. The project's ``jobs`` travel as one zip. What is sent lies in the cache, in a folder named by its
digest: the command line ends without tidying up, and the same code is there once.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from uuid import uuid4

from rewindow.engine.spark.jars import cache_dir
from rewindow.errors import ConfigError

CODE = ("jobs",)
"""The project's folders that hold code of jobs."""

_INSTALLED = Path(__file__).parents[3]
_EPOCH = (1980, 1, 1, 0, 0, 0)


def shipped(root: Path, ships: Sequence[str], *, itself: bool = False) -> list[Path]:
    """Return the zips to send: what a target ``ships`` (paths or globs from the root), then the project's code.

    ``itself``: rewindow as it is installed here, where nobody keeps the wheel that it came as. Raises `ConfigError` (78)
    for a path where nothing is, or a file that is no wheel and no zip.
    """
    sent = [_find(root, named) for named in ships]
    kept = [_kept(f"{path.stem}.zip", path.read_bytes()) for path in sent]
    if itself:
        kept.append(_kept("rewindow.zip", _packed(_INSTALLED, ["rewindow"])))
    return [*kept, _kept("project-code.zip", _packed(root, CODE))]


def _find(root: Path, named: str) -> Path:
    found = [Path(named)] if Path(named).is_absolute() else sorted(root.glob(named))
    if not found or not found[-1].is_file():
        raise ConfigError(f"ships: there is no {named} below {root}: build it (`make wheel`), or fix the path")
    path = found[-1]  # of several versions the last by name
    if path.suffix not in {".whl", ".zip"} or not zipfile.is_zipfile(path):
        raise ConfigError(f"ships: {path.name} is neither a wheel nor a zip: Spark's workers import from these only")
    return path


def _packed(root: Path, names: Iterable[str]) -> bytes:
    """Zip the Python files of a project's folders: the same files, the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            for path in sorted((root / name).rglob("*.py")):
                archive.writestr(zipfile.ZipInfo(path.relative_to(root).as_posix(), _EPOCH), path.read_bytes())
    return buffer.getvalue()


def _kept(name: str, data: bytes) -> Path:
    place = cache_dir().parent / "ships" / blake2b(data, digest_size=16).hexdigest() / name
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        new = place.with_suffix(f".{uuid4().hex}")
        new.write_bytes(data)
        new.replace(place)
    return place
