"""What to do if landed data is gone, or the ledger that names it. A feed under another name has a new ledger and new logs."""

from __future__ import annotations

from typing import Final

from rewindow.errors import CheckpointError

_WITHOUT_COPY: Final = (
    "Without a copy, give the feed another name in its file and in those of its jobs, and land the source again"
)


def lost_files(feed: str) -> str:
    """Return what to do if landed files are gone."""
    return (
        "Only a copy of the warehouse has what was landed: restore the file from it. Without a copy, land the source again, "
        f"`rewindow land {feed} --new-generation`, then `rewindow rewind JOB --to 0` and `rewindow run JOB` for each of its jobs"
    )


def more_landings(path: str, feed: str, published: int, known: int) -> CheckpointError:
    """Return the error of a log that has more landings than its ledger."""
    return lost_landings(path, feed, f"has {published:,} landings, but its ledger {known:,}")


def lost_landings(path: str, feed: str, what: str) -> CheckpointError:
    """Return the error of a log that has more than its ledger says; ``what`` follows the log's path."""
    message = (
        f"{path} {what}: an older copy of the ledger was restored for feed {feed!r}, or its newest commit is lost. "
        f"Restore the newest copy. {_WITHOUT_COPY}"
    )
    return CheckpointError(message)
