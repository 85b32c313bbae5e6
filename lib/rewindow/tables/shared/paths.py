"""The paths of rewindow's tables below a warehouse, and which names are safe in paths."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from hashlib import blake2b

from rewindow.contracts.reserved_names import RESERVED, is_reserved
from rewindow.control.plan.spec import MAIN
from rewindow.errors import ConfigError
from rewindow.streams.serde.schema import Column

RUNS, LANDINGS, JOURNAL = "rewindow/runs", "rewindow/landings", "rewindow/journal"

METRICS, QUARANTINE, EXPECTATIONS = "rewindow/metrics", "rewindow/quarantine", "rewindow/expectations"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_MOST_CHARACTERS = 255
_STAGED = re.compile(r"(.+)-[0-9a-f]{32}(?:\.[0-9a-f]{8})?\.(?:parquet|arrow)")


def output_path(name: str, branch: str = MAIN) -> str:
    """Return the path, below the warehouse, of the output table ``a.b``: ``a/b``, or on a branch ``a/b__<branch>``.

    Raises `ConfigError` (78) for an invalid name, or one that rewindow reserves for itself.
    """
    parts = [safe_name(part, "table") for part in name.split(".")]
    if is_reserved(name):
        raise ConfigError(
            "table-name-reserved",
            "table {table!r} uses a name that rewindow reserves ({reserved}): choose another name",
            table=name,
            reserved=", ".join(RESERVED),
        )
    if branch != MAIN:
        parts[-1] = _short_enough(f"{parts[-1]}__{safe_name(branch, 'branch')}")
    return "/".join(parts)


def log_path(feed: str, topic: str) -> str:
    """Return the path, below the warehouse, of the log of a feed's topic."""
    return f"logs/{safe_name(feed, 'feed')}/{safe_name(topic, 'topic')}"


def changelog_path(job: str, store: str, columns: Sequence[Column]) -> str:
    """Return the path of a store's changelog, which depends on the store's columns.

    Branches whose store has the same columns share the changelog. The column ``_run`` states the run of each row.
    """
    text = json.dumps([list(column) for column in columns], ensure_ascii=False)
    digest = blake2b(text.encode(), digest_size=4).hexdigest()
    return f"state/{safe_name(job, 'job')}/{safe_name(store, 'store')}/{digest}"


def internal_path(job: str, attempt: str, topic: str) -> str:
    """Return the path of an attempt's internal log."""
    return f"internal/{safe_name(job, 'job')}/{safe_name(attempt, 'attempt')}/{safe_name(topic, 'topic')}"


def safe_name(name: str, kind: str) -> str:
    """Return a name unchanged if it is safe in paths and in SQL. Raises `ConfigError` (78) otherwise."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            "name-invalid",
            "{name!r} cannot name a {kind}: use letters, digits, '_', '-', single dots; a letter or digit first",
            name=name,
            kind=kind,
        )
    return _short_enough(name)


def _short_enough(name: str) -> str:
    """Return the name of a folder unchanged. Raises `ConfigError` (78) if it is too long for a file system."""
    if len(name) > _MOST_CHARACTERS:
        raise ConfigError(
            "name-too-long",
            "{name} is too long for the name of a folder, which has at most {most} characters: choose a shorter name",
            name=name,
            most=_MOST_CHARACTERS,
        )
    return name


def staged_by(path: str) -> str:
    """Return the attempt in a staged file's name; ``""`` if the file does not have the name of a staged file."""
    staged = _STAGED.fullmatch(path.rpartition("/")[2])
    return staged[1] if staged else ""
