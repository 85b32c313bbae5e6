"""A log gets another source while landings are kept: whether it can go on from where the former source was landed.

With `every`, time tells what is new: what arrives after the last kept interval. Without it, only the landed position does. It
holds for landed files that are in another folder now, and for a table that was moved. In any other source all rows would be
new, also those that the kept landings have (ADR-142).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewindow.contracts.ingest import JOB, LogSpec, ReadWindow
from rewindow.control.ingest.protocols import Call
from rewindow.control.ingest.source_origins import FILES, is_same_origin, kind_of, position_of
from rewindow.errors import ConfigError, LandedFileError


def check_goes_on(call: Call, spec: LogSpec, position: Mapping[str, Any], window: ReadWindow) -> None:
    """Raise `ConfigError` (78) if a log of a new generation has another source, in which its landed position means nothing."""
    source = spec.source
    before = call.progress.declared.get("logs", {}).get(spec.topic, {}).get("source")
    was = before["name"] if before else None
    if position_of(position, source.format) is None:
        raise _another(call, spec, was, "is of another kind")
    if before and not is_same_origin(before, {"format": source.format, "name": source.name}):
        raise _another(call, spec, was, "is of another job")
    if was == source.name or source.format == JOB:
        return
    if kind_of(source.format) == FILES:
        try:
            call.engine.look(source, position)
        except LandedFileError as error:
            raise _another(call, spec, was, f"does not have the landed file {error.file} as it was") from error
    elif call.tables.look(spec, None, window).position["id"] != position["id"]:
        raise _another(call, spec, was, "is another table")


def _another(call: Call, spec: LogSpec, was: str | None, why: str) -> ConfigError:
    feed, name = call.feed.feed, spec.source.name
    change = f"{was} -> {name}" if was and was != name else name
    message = (
        f"--keep {call.generation.kept}: the log {spec.topic} has another source now ({change}), which {why}. Without `every`, "
        "nothing tells which of its rows the kept landings have, and these would be landed twice. Restore the source, give the "
        f"new one a log of its own, or land everything again: `rewindow land {feed} --new-generation`"
    )
    return ConfigError(message)
