"""Ship code to remote executors and servers: rewindow's wheel, the project's code, and other zips.

Spark adds a ``.zip`` to its workers' import path but ignores a ``.whl``. A wheel is a zip, so it is sent with the suffix
``.zip``. The project's ``jobs`` folder is one zip. The zips stay in the cache, because the command exits without cleanup. The
name of a zip's folder is a digest of its content, so the same code is stored once.
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
"""The project's folders with the code of jobs."""

_INSTALLED = Path(__file__).parents[3]
_EPOCH = (1980, 1, 1, 0, 0, 0)


def shipped(root: Path, ships: Sequence[str], *, itself: bool = False) -> list[Path]:
    """Return the zips to send: the files that a target ``ships`` (paths or globs from the root), then the project's code.

    ``itself`` adds a zip of the rewindow that is installed here, for targets that ship no wheel of rewindow. Raises
    `ConfigError` (78) for a path that does not exist, or a file that is neither a wheel nor a zip.
    """
    found_paths = [_find(root, named) for named in ships]
    zips = [_cached(f"{path.stem}.zip", path.read_bytes()) for path in found_paths]
    if itself:
        zips.append(_cached("rewindow.zip", _packed(_INSTALLED, ["rewindow"])))
    return [*zips, _cached("project-code.zip", _packed(root, CODE))]


def _find(root: Path, named: str) -> Path:
    candidates = [Path(named)] if Path(named).is_absolute() else sorted(root.glob(named))
    if not candidates or not candidates[-1].is_file():
        raise ConfigError(
            "shipped-file-missing",
            "ships: {file} does not exist below {project}. Build it (`python -m pip wheel --no-deps -w dist rewindow`) or "
            "fix the path",
            file=named,
            project=root,
        )
    # A glob may match several versions. The last one by name is sent.
    path = candidates[-1]
    if path.suffix not in {".whl", ".zip"} or not zipfile.is_zipfile(path):
        raise ConfigError(
            "shipped-file-no-wheel",
            "ships: {file} is neither a wheel nor a zip, the only files that Spark's workers import from",
            file=path.name,
        )
    return path


def _packed(root: Path, names: Iterable[str]) -> bytes:
    """Zip the Python files of folders. Equal files give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            for path in sorted((root / name).rglob("*.py")):
                archive.writestr(zipfile.ZipInfo(path.relative_to(root).as_posix(), _EPOCH), path.read_bytes())
    return buffer.getvalue()


def _cached(name: str, data: bytes) -> Path:
    path = cache_dir().parent / "ships" / blake2b(data, digest_size=16).hexdigest() / name
    # In a shared cache, another user could have stored other code under this name.
    if not path.is_file() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{uuid4().hex}")
        new.write_bytes(data)
        new.replace(path)
    return path
