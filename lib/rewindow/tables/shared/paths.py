"""Where rewindow's tables are below a warehouse, and which names are safe there."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from hashlib import blake2b

from rewindow.contracts.table_names import RESERVED
from rewindow.control.plan.spec import MAIN
from rewindow.errors import ConfigError
from rewindow.streams.serde.schema import Column

RUNS, LANDINGS, JOURNAL = "rewindow/runs", "rewindow/landings", "rewindow/journal"

METRICS, QUARANTINE = "rewindow/metrics", "rewindow/quarantine"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")


def output_path(name: str, branch: str = MAIN) -> str:
    """Return where below the warehouse the output table ``a.b`` lies: ``a/b``; of another branch ``a/b__<branch>``.

    Raises `ConfigError` (78) for a name that is no table's, or that belongs to rewindow itself.
    """
    parts = [safe_name(part, "table") for part in name.split(".")]
    if parts[0] in RESERVED:
        message = f"table {name!r} uses a name that rewindow reserves ({', '.join(RESERVED)}): choose another name"
        raise ConfigError(message)
    suffix = "" if branch == MAIN else f"__{safe_name(branch, 'branch')}"
    return "/".join(parts) + suffix


def log_path(feed: str, topic: str) -> str:
    """Return where below the warehouse the log of a feed's topic lies."""
    return f"logs/{safe_name(feed, 'feed')}/{safe_name(topic, 'topic')}"


def changelog_path(job: str, store: str, columns: Sequence[Column]) -> str:
    """Return where the changelog of a job's store lies: below a folder for each set of columns that it ever had.

    All branches with these columns share it; ``_run`` tells them apart.
    """
    text = json.dumps([list(column) for column in columns], ensure_ascii=False)
    form = blake2b(text.encode(), digest_size=4).hexdigest()
    return f"state/{safe_name(job, 'job')}/{safe_name(store, 'store')}/{form}"


def internal_path(job: str, attempt: str, topic: str) -> str:
    """Return the folder of an attempt's internal log."""
    return f"internal/{safe_name(job, 'job')}/{safe_name(attempt, 'attempt')}/{safe_name(topic, 'topic')}"


def safe_name(name: str, what: str) -> str:
    """Return a name that is safe in paths and in SQL. Raises `ConfigError` (78) for any other."""
    if not _NAME.fullmatch(name):
        message = f"{name!r} cannot name a {what}: use letters, digits, '_', '-', single dots; a letter or digit first"
        raise ConfigError(message)
    return name
