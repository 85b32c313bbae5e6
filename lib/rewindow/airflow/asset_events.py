"""The events of assets: whether a command updated a table or feed, and what it printed about it. Does not import Airflow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

TABLE: Final = "table"
"""Key in an asset's extra of the name of its table, as in the job's file."""
FEED: Final = "feed"
"""Key in an asset's extra of the name of its feed."""


def did_nothing(result: Mapping[str, Any]) -> bool:
    """Return whether a command found nothing to do. False for commands of which it is not known.

    The ``--json`` output of `run` has ``published`` and ``run``, that of `promote` ``published`` and ``is_new``, that of
    `publish` ``published`` and ``accepted``, that of `land` ``landings``.
    """
    if "published" in result:
        return not any(result.get(name) for name in ("run", "is_new", "lagged", "taken_over", "accepted"))
    return "landings" in result and not result["landings"] and not result.get("was_interrupted")


def has_event(asset: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Return whether a command causes an event of an asset, given the asset's extra: whether it changed the table or feed.

    A feed's asset has one after a landing, also one by `run --land`; any other after a command that did something, unless a run
    is on hold, so that readers do not see what was done.
    """
    if FEED not in asset:
        return not did_nothing(result) and not result.get("on_hold")
    landed = result.get("landed") or result
    return landed.get(FEED) == asset[FEED] and bool(landed.get("landings") or landed.get("was_interrupted"))


def told_of(asset: Mapping[str, Any], name: str, result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a command printed about an asset with this extra and name: of a feed what it landed; or None."""
    if FEED not in asset:
        return extra_of(str(asset.get(TABLE, name)), [result])
    landed = result.get("landed") or result
    if landed.get(FEED) != asset[FEED] or "landings" not in landed:
        return None
    return {key: landed.get(key) for key in (FEED, "landings", "rows", "quarantined", "watermark_ms")}


def extra_of(table: str, results: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return what `run` or `promote` printed about a table, or None.

    ``results`` is the ``--json`` output of commands. A governed table has three name parts there, but may have two in the
    job's file, because the target supplies the catalog.
    """
    found = [(str(one["table"]).replace("/", "."), one, result) for result in results for one in _tables(result)]
    matches = [one for one in found if one[0] == table] or [one for one in found if one[0].endswith(f".{table}")]
    if len({name for name, _, _ in matches}) != 1:
        return None
    _, printed, result = matches[-1]
    return {**printed, "epochs": result.get("epochs"), "is_new": not did_nothing(result)}


def _tables(result: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    published: Iterable[Mapping[str, Any]] = result.get("published", ())
    return published
