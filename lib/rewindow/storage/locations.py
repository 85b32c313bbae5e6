"""Storage locations: local folders and buckets, the settings that are needed to open a bucket, and the files in a folder.

Two clients open a bucket: delta-rs commits, Arrow reads and writes files. Both take their settings from the target's
``storage_options`` and, if not there, from the environment. The driver sends the ``storage_options`` to workers, which take
all other settings from their own environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pyarrow import fs

from rewindow.errors import AccessError, ConfigError, RewindowError, StorageError, one_line

BUCKETS = ("s3", "s3a", "gs", "abfss")
"""The URI schemes that a warehouse may have: Arrow can open them, and delta-rs commits to them with put-if-absent."""

_S3 = ("s3", "s3a")
_ENDPOINT = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")
_REFUSED = re.compile(r"\b40[13]\b|Forbidden|AccessDenied|ACCESS_DENIED|Unauthorized")


class _Origin(NamedTuple):
    """What distinguishes S3-compatible buckets that have the same URI.

    Other URIs are unique, as Azure's contain the account.
    """

    endpoint: str = ""
    region: str | None = None


_KNOWN: dict[str, dict[str, str]] = {}
_ORIGINS: dict[str, _Origin] = {}
"""Maps the URI of each bucket that this process has opened to its origin."""


def is_uri(path: str) -> bool:
    """Return whether a path is a URI (``s3://...``) and not a local path."""
    return len(urlsplit(path).scheme) > 1


def use(uri: str, options: Mapping[str, str]) -> None:
    """Register the settings for all paths below a URI. Settings that are not given come from the environment.

    A process opens only one bucket under each URI, because tables are cached by URI (`delta.handle`). New credentials for the
    same bucket replace the former ones, which may have expired.

    Raises `ConfigError` (78) for settings that cannot work, for settings that let two writers commit the same version, and
    for settings that lead to another bucket than the one that this process has opened under the URI.
    """
    uri, given = uri.rstrip("/"), {name.upper(): value for name, value in options.items()}
    _check(uri, given)
    get = _Settings(given)
    origin = _Origin(_endpoint(get).rstrip("/"), _region(get)) if urlsplit(uri).scheme in _S3 else _Origin()
    if (before := _ORIGINS.get(uri, origin)) != origin:
        names = (name for name, one, other in zip(_Origin._fields, before, origin, strict=True) if one != other)
        raise ConfigError(
            "bucket-settings-changed",
            "{uri}: this process has opened it with another {settings}. Open it in another process, or "
            "restart this one (in a notebook: the kernel), or give the two warehouses different URIs",
            uri=uri,
            settings=" and ".join(names),
        )
    _ORIGINS[uri], _KNOWN[uri] = origin, given


def known() -> Mapping[str, Mapping[str, str]]:
    """Return the registered settings, for `adopt` in another process. They may contain secrets, so never show them."""
    return {uri: dict(options) for uri, options in _KNOWN.items()}


def adopt(known: Mapping[str, Mapping[str, str]]) -> None:
    """Register the settings of another process."""
    _KNOWN.update({uri: dict(options) for uri, options in known.items()})


def options_of(path: str) -> dict[str, str] | None:
    """Return the settings that delta-rs needs for a table in addition to the environment; None for a local path."""
    if not is_uri(path):
        return None
    options = dict(_options_of(path))
    # delta-rs and Arrow read endpoint and region from different environment variables, so they are passed explicitly.
    if urlsplit(path).scheme in _S3:
        get = _Settings(options)
        chosen = {"AWS_ENDPOINT_URL": _endpoint(get), "AWS_REGION": _region(get)}
        options = {name: value for name, value in options.items() if name not in (*_ENDPOINT, *_REGION)}
        options |= {name: value for name, value in chosen.items() if value}
    return options


def allows_http(path: str) -> bool:
    """Return whether a bucket may be opened without encryption."""
    return _Settings(_options_of(path)).is_on("AWS_ALLOW_HTTP")


def filesystem_of(path: str) -> tuple[Any, str]:
    """Return the Arrow file system of a folder or file, and the path in that file system. Does no I/O.

    Raises `ConfigError` (78) for settings with which Arrow cannot create the file system.
    """
    if not is_uri(path):
        return fs.LocalFileSystem(), path
    url = urlsplit(path)
    if url.scheme not in BUCKETS:
        return tuple(fs.FileSystem.from_uri(path))
    within = f"{url.netloc.partition('@')[0]}{url.path}".rstrip("/")
    return _client(url.scheme, url.netloc, tuple(sorted(_options_of(path).items()))), within


def check_spark_reads(location: str, why: str) -> None:
    """Raise `ConfigError` (78) if a table that only Spark can read is in a bucket. Spark has no client for buckets here.

    ``why``: the reason why only Spark can read the table, for the message.
    """
    if is_uri(location):
        raise ConfigError(
            "table-in-bucket-needs-spark",
            "{location} can only be read by Spark ({reason}), which has no client for buckets. Keep it on a local disk",
            location=location,
            reason=why,
        )


def failed(path: str, error: Exception) -> RewindowError:
    """Return the error to raise for a client's error about a bucket: `AccessError` (77) or `StorageError` (74)."""
    said = one_line(error)
    kind = AccessError if _REFUSED.search(said) else StorageError
    return kind(
        "bucket-not-opened",
        "{path} cannot be opened: {reason}. Check endpoint, region, credentials and bucket (docs/deployment/buckets.md)",
        path=path,
        reason=said,
    )


def _options_of(path: str) -> Mapping[str, str]:
    above = [uri for uri in _KNOWN if path == uri or path.startswith(f"{uri}/")]
    return _KNOWN[max(above, key=len)] if above else {}


def _check(uri: str, options: Mapping[str, str]) -> None:
    scheme, get = urlsplit(uri).scheme, _Settings(options)
    if scheme not in BUCKETS:
        raise ConfigError(
            "warehouse-scheme-unknown",
            "{uri}: a warehouse must be a local folder or a URI with one of the schemes {schemes}",
            uri=uri,
            schemes=", ".join(BUCKETS),
        )
    if scheme == "gs" and options:
        raise ConfigError(
            "storage-options-not-supported",
            "storage_options: not supported for {uri}. Set GOOGLE_APPLICATION_CREDENTIALS in the environment instead",
            uri=uri,
        )
    if scheme not in _S3:
        return
    for name in ("AWS_S3_ALLOW_UNSAFE_RENAME", "AWS_ALLOW_UNSAFE_RENAME"):
        if get.is_on(name):
            raise ConfigError(
                "unsafe-rename-enabled",
                "{variable} is set, so two writers could commit the same version of the ledger in {uri}. Unset it",
                variable=name,
                uri=uri,
            )
    if get("AWS_CONDITIONAL_PUT", "CONDITIONAL_PUT") not in (None, "etag"):
        raise ConfigError(
            "conditional-put-not-etag",
            "AWS_CONDITIONAL_PUT must be etag or unset: otherwise two writers could commit the same version in {uri}",
            uri=uri,
        )
    if _endpoint(get).startswith("http://") and not get.is_on("AWS_ALLOW_HTTP"):
        raise ConfigError(
            "endpoint-not-encrypted",
            "AWS_ENDPOINT_URL is http://, which does not encrypt traffic. Use https://, or set AWS_ALLOW_HTTP: true",
        )


class _Settings:
    """Looks up settings: registered ones first, then the environment."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def __call__(self, *names: str) -> str | None:
        """Return the value of a setting that has several names; None if it is not set."""
        found = (where.get(name) for where in (self._options, os.environ) for name in names)
        return next(filter(None, found), None)

    def is_on(self, name: str) -> bool:
        """Return whether a boolean setting is on, as delta-rs parses it."""
        return (self(name) or "").lower() in ("1", "true", "on", "yes", "y")


def _endpoint(get: _Settings) -> str:
    found = get(*_ENDPOINT) or ""
    if found and not found.startswith(("http://", "https://")):
        raise ConfigError(
            "endpoint-without-scheme",
            "AWS_ENDPOINT_URL: {endpoint} has no scheme. Write https://{endpoint}",
            endpoint=found.rpartition("@")[2],
        )
    return found


def _region(get: _Settings) -> str | None:
    return get(*_REGION)


@cache
def _client(scheme: str, host: str, options: tuple[tuple[str, str], ...]) -> Any:
    """Return the Arrow file system of a bucket. Each process has only one per bucket, because it keeps connections open."""
    get = _Settings(dict(options))
    try:
        return fs.GcsFileSystem() if scheme == "gs" else _azure(host, get) if scheme == "abfss" else _s3(get)
    except ValueError as error:
        raise ConfigError(
            "bucket-options-invalid",
            "{scheme}://{host} cannot be opened: {reason}. Fix storage_options or the environment",
            scheme=scheme,
            host=host,
            reason=str(error),
        ) from error


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
        allow_delayed_open=True,  # so that a small file is written with one request
    )


def check_inside(warehouse: str, paths: Iterable[str]) -> None:
    """Raise `ConfigError` (78) if a symbolic link lets a local path lead out of the warehouse."""
    root = os.path.realpath(warehouse)
    for path in paths:
        real = os.path.realpath(path)
        if os.path.commonpath((root, real)) != root:
            raise ConfigError(
                "path-leaves-warehouse",
                "{path} leads out of the warehouse through a symbolic link, to {target}. Put the files "
                "themselves into the warehouse, or name their folder as the warehouse",
                path=path,
                target=real,
            )


LOG = "_delta_log"
FEW = 32
"""Up to this number of objects, each object is looked up with a request. For more objects, the folder is listed, with a
request for each 1,000 files."""
_AT_ONCE = 8


class Listed(NamedTuple):
    """A file below a folder. ``path`` is relative to the folder, with ``/``.

    ``facts`` returns the file's size in bytes and its modification time (epoch ms). It raises FileNotFoundError if the file is
    gone.
    """

    path: str
    facts: Callable[[], tuple[int, int]]


def local_files(root: str) -> Iterator[Listed]:
    """Yield every file below a folder, in arbitrary order. `Listed.facts` calls `stat`.

    The log of a Delta table in the folder is left out. Links to folders are not followed. A folder that does not exist has no
    files. Raises OSError if a folder cannot be listed.
    """
    folders = [""]
    while folders:
        below = folders.pop()
        # `scandir` lists a folder in a fifth of the time that Arrow takes.
        with suppress(FileNotFoundError), os.scandir(f"{root}/{below}") as entries:
            for entry in entries:
                path = f"{below}{entry.name}"
                # A link to a folder is not followed. It may lead out of the warehouse, and `gc` deletes files that are found
                # here.
                if entry.is_dir(follow_symlinks=False):
                    folders += [] if path == LOG else [f"{path}/"]
                elif entry.is_file():
                    yield Listed(path, partial(_facts, entry))


def _facts(entry: os.DirEntry[str]) -> tuple[int, int]:
    found = entry.stat()
    return found.st_size, found.st_mtime_ns // 1_000_000


def local_sizes(root: str, paths: Collection[str]) -> dict[str, int]:
    """Return the sizes (bytes) of those files of ``paths`` that exist, by path. ``paths`` are relative to ``root``."""
    sizes = {}
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError):
            sizes[path] = os.stat(f"{root}/{path}").st_size  # noqa: PTH116 - called for each file of a table
    return sizes


def object_sizes(filesystem: Any, root: str, paths: Collection[str]) -> dict[str, int]:
    """Return the sizes (bytes) of those objects of ``paths`` that exist, by path, with one request each (see `local_sizes`)."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found = threads.map(lambda path: (path, filesystem.get_file_info(f"{root}/{path}")), paths)
        return {path: info.size for path, info in found if info.type == fs.FileType.File}


def object_files(filesystem: Any, root: str) -> Iterator[Listed]:
    """Yield every object below a prefix. The log of a Delta table is left out. `Listed.facts` makes no request."""
    for info in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True, recursive=True)):
        path = info.path[len(root) :].lstrip("/")
        if info.type == fs.FileType.File and not path.startswith(f"{LOG}/"):
            yield Listed(path, partial(_stated, info))


def _stated(info: fs.FileInfo) -> tuple[int, int]:
    return info.size, (info.mtime_ns or 0) // 1_000_000
