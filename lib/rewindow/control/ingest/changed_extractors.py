"""Notice that a function which extracts event times has changed since the last landing: a log then has times of both. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rewindow.control.ingest.landings import Feed


def changed_extractors(feed: Feed | None, versions: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each function whose code differs from that of the feed's last landing."""
    if feed is None or not feed.landings:
        return
    last, name = feed.landings[-1], feed.definition.feed
    for function, version in versions.items():
        if last.extractors.get(function, version) != version:
            yield (
                f"feed {name}: {function} has changed since landing {last.number}. Landed records keep their times; "
                f"`rewindow land {name} --new-generation` lands them again with the new ones"
            )
