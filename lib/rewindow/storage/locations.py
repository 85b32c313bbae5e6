"""Where bytes lie: a folder of this machine or a bucket, and with which settings a bucket is opened.

Two clients open a bucket: delta-rs commits, Arrow reads and writes files. Both get the same settings, from the target's
``storage_options`` or from the environment. Workers are sent what the driver was told, and look into their own environment
for the rest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs

from rewindow.errors import AccessError, ConfigError, RewindowError, StorageError

BUCKETS = ("s3", "s3a", "gs", "abfss")
"""The schemes of storage on which a warehouse may lie: Arrow opens it, and delta-rs puts there only if absent."""

_S3 = ("s3", "s3a")
_ENDPOINT = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_REFUSED = re.compile(r"\b40[13]\b|Forbidden|AccessDenied|ACCESS_DENIED|Unauthorized")
_KNOWN: dict[str, dict[str, str]] = {}


def is_uri(path: str) -> bool:
    """Say whether a path names a scheme (``s3://...``) and is no local path."""
    return len(urlsplit(path).scheme) > 1


def use(uri: str, options: Mapping[str, str]) -> None:
    """Open whatever lies below a URI with these settings from now on, and what they leave open with the environment's.

    Raises `ConfigError` (78) for settings under which two writers could both win, or that open nothing.
    """
    _KNOWN[uri.rstrip("/")] = {name.upper(): value for name, value in options.items()}
    _check(uri)


def known() -> Mapping[str, Mapping[str, str]]:
    """Return what `use` was told, for `adopt` in another process. It may hold secrets: pass it on, never show it."""
    return {uri: dict(options) for uri, options in _KNOWN.items()}


def adopt(known: Mapping[str, Mapping[str, str]]) -> None:
    """Take over what another process was told."""
    _KNOWN.update({uri: dict(options) for uri, options in known.items()})


def options_of(path: str) -> dict[str, str] | None:
    """Return the settings that delta-rs needs for a table besides the environment; None for a local path.

    Where the two clients might read the environment differently, the choice is made for both.
    """
    if not is_uri(path):
        return None
    options = dict(_options_of(path))
    if urlsplit(path).scheme in _S3:
        get = _Settings(options)
        chosen = {"AWS_ENDPOINT_URL": _endpoint(get), "AWS_REGION": _region(get)}
        options = {name: value for name, value in options.items() if name not in (*_ENDPOINT, *_REGION)}
        options |= {name: value for name, value in chosen.items() if value}
    return options


def opened(path: str) -> tuple[Any, str]:
    """Return the Arrow file system of a folder or file, and its path there. Nothing is read.

    Raises `ConfigError` (78) for a scheme that Arrow does not know, or settings that open nothing.
    """
    if not is_uri(path):
        return fs.LocalFileSystem(), path
    place = urlsplit(path)
    if place.scheme not in BUCKETS:
        return tuple(fs.FileSystem.from_uri(path))
    within = f"{place.netloc.partition('@')[0]}{place.path}".rstrip("/")
    return _client(place.scheme, place.netloc, tuple(sorted(_options_of(path).items()))), within


def check_spark_reads(place: str, why: str) -> None:
    """Raise `ConfigError` (78) for a table in a bucket that only Spark could read: its JVM opens none here."""
    if is_uri(place):
        message = (
            f"{place} would be read by Spark itself ({why}), which has no client for buckets here: keep it on a disk"
        )
        raise ConfigError(message)


def failed(path: str, error: Exception) -> RewindowError:
    """Return what a client's error about a bucket is to a person and to a scheduler (77 or 74)."""
    said = " ".join(_COLOURS.sub("", str(error)).split())
    kind = AccessError if _REFUSED.search(said) else StorageError
    return kind(
        f"{path} cannot be opened: {said}. See to endpoint, region, credentials and bucket (README, Object stores)"
    )


def _options_of(path: str) -> Mapping[str, str]:
    above = [uri for uri in _KNOWN if path == uri or path.startswith(f"{uri}/")]
    return _KNOWN[max(above, key=len)] if above else {}


def _check(uri: str) -> None:
    scheme, get = urlsplit(uri).scheme, _Settings(_options_of(uri))
    if scheme not in BUCKETS:
        message = f"{uri}: a warehouse is a folder of a disk, or lies on {', '.join(BUCKETS)}"
        raise ConfigError(message)
    if scheme == "gs" and _options_of(uri):
        message = f"storage_options: {uri} is opened with what GOOGLE_APPLICATION_CREDENTIALS names in the environment"
        raise ConfigError(message)
    if scheme not in _S3:
        return
    for name in ("AWS_S3_ALLOW_UNSAFE_RENAME", "AWS_ALLOW_UNSAFE_RENAME"):
        if get.is_on(name):
            message = f"{name} is set: two writers could both get one version of the ledger. Unset it; {uri} must put if absent"
            raise ConfigError(message)
    if get("AWS_CONDITIONAL_PUT", "CONDITIONAL_PUT") not in (None, "etag"):
        message = f"AWS_CONDITIONAL_PUT must be etag, or unset: else two writers could both get one version of {uri}"
        raise ConfigError(message)
    if _endpoint(get).startswith("http://") and not get.is_on("AWS_ALLOW_HTTP"):
        message = (
            "AWS_ENDPOINT_URL is http://, so what is read and written can be seen: https://, or AWS_ALLOW_HTTP: true"
        )
        raise ConfigError(message)


class _Settings:
    """What was told, else the environment."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def __call__(self, *names: str) -> str | None:
        """Return the first of these names of one setting that was told, else the first that the environment has."""
        found = (where.get(name) for where in (self._options, os.environ) for name in names)
        return next(filter(None, found), None)

    def is_on(self, name: str) -> bool:
        """Whether a switch is on, as delta-rs reads it."""
        return (self(name) or "").lower() in ("1", "true", "on", "yes", "y")


def _endpoint(get: _Settings) -> str:
    found = get(*_ENDPOINT) or ""
    if found and not found.startswith(("http://", "https://")):
        message = f"AWS_ENDPOINT_URL: {found} does not say how: write it like https://{found}"
        raise ConfigError(message)
    return found


def _region(get: _Settings) -> str | None:
    return get(*_REGION)


@cache
def _client(scheme: str, host: str, options: tuple[tuple[str, str], ...]) -> Any:
    """Return the Arrow file system of a bucket: one a process, which keeps its connections."""
    get = _Settings(dict(options))
    try:
        return fs.GcsFileSystem() if scheme == "gs" else _azure(host, get) if scheme == "abfss" else _s3(get)
    except ValueError as error:
        message = f"{scheme}://{host} cannot be opened: {error}. Fix storage_options, or the environment"
        raise ConfigError(message) from error


def _azure(host: str, get: _Settings) -> Any:
    account = host.partition("@")[2].partition(".")[0]
    if key := get("AZURE_STORAGE_ACCOUNT_KEY"):
        return fs.AzureFileSystem(account, account_key=key)
    names = ("tenant_id", "client_id", "client_secret")
    return fs.AzureFileSystem(account, **{name: get(f"AZURE_{name.upper()}") for name in names})


def _s3(get: _Settings) -> Any:
    endpoint = _endpoint(get)
    return fs.S3FileSystem(
        access_key=get("AWS_ACCESS_KEY_ID"),
        secret_key=get("AWS_SECRET_ACCESS_KEY"),
        session_token=get("AWS_SESSION_TOKEN"),
        region=_region(get),
        scheme=endpoint.partition("://")[0] or "https",
        endpoint_override=endpoint.partition("://")[2] or None,
        force_virtual_addressing=get.is_on("AWS_VIRTUAL_HOSTED_STYLE_REQUEST"),
        allow_delayed_open=True,  # a small file is one request
    )
