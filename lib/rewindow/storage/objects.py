"""Requests to buckets that Arrow lacks: get an object in one request, put it only if absent, list the names after a name.

obstore is the Python binding of the Rust crate with which delta-rs commits. So obstore and delta-rs put conditionally in the
same way and accept the same settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError, UnknownConfigurationKeyError
from obstore.store import from_url

from rewindow.errors import one_line
from rewindow.storage.locations import allows_http, options_of

_ALLOW_HTTP = "AWS_ALLOW_HTTP"
_OF_STORES = ("aws_", "azure_", "google_")
_RETRIES: Any = {"max_retries": 10, "retry_timeout": timedelta(seconds=60)}


class Objects:
    """The objects of a bucket below a URI. Paths are relative to the URI, with ``/``."""

    def __init__(self, uri: str) -> None:
        """Bind to a URI. Does no I/O. Raises OSError for settings that cannot work."""
        url = urlsplit(uri)
        options = tuple(sorted((options_of(uri) or {}).items()))
        self._store = _store(f"{url.scheme}://{url.netloc}", options, allows_http=allows_http(uri))
        self._base = url.path.strip("/")

    def get(self, path: str, *, most_bytes: int | None = None) -> pa.Buffer | None:
        """Return an object's bytes, with one request; None if there are more than ``most_bytes``, which are then not read.

        Raises FileNotFoundError if the object does not exist, OSError if the request fails.
        """
        try:
            found = obstore.get(self._store, self._full(path))
            if most_bytes is not None and found.meta["size"] > most_bytes:
                return None
            return pa.py_buffer(found.bytes())
        except BaseError as error:
            raise OSError(one_line(error)) from error

    def put(self, path: str, data: bytes, *, only_if_absent: bool = False) -> None:
        """Write an object.

        Raises FileExistsError if the object exists and ``only_if_absent`` is set, OSError if the request fails.
        """
        try:
            obstore.put(self._store, self._full(path), data, mode="create" if only_if_absent else "overwrite")
        except AlreadyExistsError as error:
            raise FileExistsError(one_line(error)) from error
        except BaseError as error:
            raise OSError(one_line(error)) from error

    def delete(self, path: str) -> None:
        """Delete an object, if it exists. Raises OSError."""
        try:
            obstore.delete(self._store, self._full(path))
        except FileNotFoundError:
            return
        except BaseError as error:
            raise OSError(one_line(error)) from error

    def names_after(self, folder: str, name: str) -> Iterator[str]:
        """Yield, in order, the names below a folder that sort after ``name``; all names if it is empty. Raises OSError."""
        base = f"{self._full(folder)}/"
        try:
            for chunk in obstore.list(self._store, base, offset=f"{base}{name}" if name else None):
                yield from sorted(found["path"].removeprefix(base) for found in chunk)
        except BaseError as error:
            raise OSError(one_line(error)) from error

    def _full(self, path: str) -> str:
        return f"{self._base}/{path}".lstrip("/")


@cache
def _store(root: str, options: tuple[tuple[str, str], ...], *, allows_http: bool) -> Any:
    """Return the client of a bucket. Each process has only one per bucket, because it keeps connections open."""
    names = {name.lower(): value for name, value in options if name != _ALLOW_HTTP}
    config: Any = {name: value for name, value in names.items() if _is_known(root, name, value)}
    try:
        return from_url(root, config=config, client_options={"allow_http": allows_http}, retry_config=_RETRIES)
    except BaseError as error:
        raise OSError(one_line(error)) from error


def _is_known(root: str, name: str, value: str) -> bool:
    """Return whether the store's client has a setting of this name. Unknown settings are ignored, as by delta-rs."""
    if not name.startswith(_OF_STORES):
        return False
    setting: Any = {name: value}
    try:
        from_url(root, config=setting)
    except UnknownConfigurationKeyError:
        return False
    except BaseError:  # the client has the setting, but it also needs others
        return True
    return True
