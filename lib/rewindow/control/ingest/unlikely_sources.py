"""Warn about sources that are hardly what was meant: outputs of jobs as tables, and files that are empty or half written. Pure.

A job writes the rows of a run partition by partition. Landed by epochs, with their watermarks, they are in the order of
their epochs; landed by commits, many of them are later than what came before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rewindow.contracts.ingest import FeedSpec, SourceLook


def outputs_as_tables(feed: FeedSpec, looks: Mapping[str, SourceLook]) -> Iterator[str]:
    """Yield a sentence for each log whose source is the table of a job's output."""
    for topic, look in looks.items():
        if look.owner is not None:
            yield (
                f"feed {feed.feed}: the source of the log {topic} is an output of the job {look.owner}. Landed as a table, its "
                f"rows have no watermarks and may be late: `source: {{job: {look.owner}, output: TOPIC}}` lands it by epochs"
            )


def empty_files(feed: FeedSpec, looks: Mapping[str, SourceLook]) -> Iterator[str]:
    """Yield a sentence for each log whose source has new text files without rows."""
    for topic, look in looks.items():
        if look.empty:
            others = len(look.empty) - 1
            more = f" and {others} more file{'s' if others > 1 else ''} have" if others else " has"
            it = "they have" if others else "it has"
            yield f"feed {feed.feed}: {look.empty[0]} of the log {topic}{more} no rows, and will be landed once {it} some"


def open_ended_files(feed: FeedSpec, looks: Mapping[str, SourceLook]) -> Iterator[str]:
    """Yield a sentence for each log whose source has new files that may be half written."""
    for topic, look in looks.items():
        if look.open_ended:
            is_one = len(look.open_ended) == 1
            do, were, last = ("does", "it was", "its last row") if is_one else ("do", "they were", "their last rows")
            more = "" if is_one else f" and {len(look.open_ended) - 1} more files"
            yield (
                f"feed {feed.feed}: {look.open_ended[0]} of the log {topic}{more} {do} not end with the end of a line. If {were} "
                f"still being written, {last} may be cut, with wrong values: compare, and once all is there land again with "
                f"`rewindow land {feed.feed} --new-generation`. Write files elsewhere, and move them into the folder"
            )
