"""Write a file to the path or URI that the user named."""

from __future__ import annotations

from mimetypes import guess_type
from pathlib import Path

from rewindow.errors import UsageError
from rewindow.storage.locations import BUCKETS, failed, filesystem_of

_WITH_TYPES = ("s3://", "s3a://")
"""Stores for which Arrow can set a content type. With it, a browser shows a page instead of saving it."""


def check_is_file(path: Path, name: str) -> None:
    """Raise `UsageError` (2) if a path is a folder. The message suggests a file with this ``name`` in the folder."""
    if path.is_dir():
        raise UsageError(
            "written-file-is-folder",
            "{path} is a folder: name a file in it, such as {example}",
            path=path,
            example=path / name,
        )


def write_text(path: Path, text: str) -> str:
    """Write a text and return its path or URI. An existing file is replaced.

    Raises `UsageError` (2) if the file cannot be written; for a bucket, `AccessError` (77) or `StorageError` (74).
    """
    uri = _uri_of(path)
    if uri is not None:
        _upload(uri, text)
        return uri
    check_is_file(path, "NAME")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            "written-file-refused",
            "cannot write {file}: {reason}. Name another file",
            file=path,
            reason=error.strerror or error,
        ) from error
    return str(path)


def _uri_of(path: Path) -> str | None:
    """Return the URI from which `Path` removed a slash (``s3:/``); None if the user named a path."""
    scheme, _, rest = str(path).partition(":/")
    return f"{scheme}://{rest.lstrip('/')}" if scheme in BUCKETS and rest else None


def _upload(uri: str, text: str) -> None:
    system, path = filesystem_of(uri)
    kind = {"Content-Type": guess_type(path)[0] or "text/plain"} if uri.startswith(_WITH_TYPES) else None
    try:
        with system.open_output_stream(path, metadata=kind) as stream:
            stream.write(text.encode())
    except OSError as error:
        raise failed(uri, error) from error
