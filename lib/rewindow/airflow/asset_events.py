"""What a command says of a table, as an asset's event carries it in ``extra``. No Airflow here: plain data in, plain data out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def extra_of(asset: str, results: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return what `run` or `promote` said of the table that an asset is called after; None if it said nothing of it.

    ``results`` are what commands printed with ``--json``. A table of a catalog has three names there and may have two
    as an asset: the target fills in the catalog.
    """
    said = [(str(table["table"]).replace("/", "."), table, result) for result in results for table in _tables(result)]
    found = [one for one in said if one[0] == asset] or [one for one in said if one[0].endswith(f".{asset}")]
    if len({name for name, _, _ in found}) != 1:
        return None
    _, table, result = found[-1]
    return {**table, "epochs": result.get("epochs"), "is_new": bool(result.get("run"))}


def _tables(result: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    published: Iterable[Mapping[str, Any]] = result.get("published", ())
    return published
