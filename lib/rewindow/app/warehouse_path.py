"""Where a target's warehouse is, refused where a direct commit is not safe."""

from __future__ import annotations

from pathlib import Path

from rewindow.config.target import TargetConfig
from rewindow.errors import ConfigError
from rewindow.storage.locations import is_uri, use

UNSAFE = ("/Volumes/", "/dbfs/")
"""Folders that are object stores behind a file system: nothing there is put only if it is absent."""


def warehouse_path(root: Path, target: TargetConfig) -> str:
    """Return the warehouse as a path or URI. Raises `ConfigError` (78) for storage on which a direct commit is not safe."""
    path = target.warehouse.removeprefix("file://")
    if is_uri(path):
        use(path, target.storage_options)
        return path.rstrip("/")
    if path.startswith(UNSAFE):
        message = (
            f"warehouse: {target.warehouse} is a bucket behind a file system, which puts a file also where one is. Name the "
            "bucket itself (s3://...), or a folder of a disk that everybody mounts. Outputs may go to a catalog's tables "
            "all the same (`commit: spark`)"
        )
        raise ConfigError(message)
    return str((root / path).absolute())
