"""Write a file that a user has named."""

from __future__ import annotations

from pathlib import Path

from rewindow.errors import UsageError


def check_is_file(path: Path, name: str) -> None:
    """Raise `UsageError` (2) if a path is a folder; the message suggests a ``name`` in it."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file in it, such as {path / name}")


def write_text(path: Path, text: str) -> Path:
    """Write a text and return the path. An earlier file is replaced. Raises `UsageError` (2) if it cannot be written."""
    check_is_file(path, "NAME")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}. Name another file") from error
    return path
