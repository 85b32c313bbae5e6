"""The ``extra`` of an asset's event: what a command printed about a table. Does not import Airflow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def extra_of(asset: str, results: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return what `run` or `promote` printed about the table that an asset is named after, or None.

    ``results`` is the ``--json`` output of commands. A governed table has three name parts there, but may have two as an
    asset, because the target supplies the catalog.
    """
    tables = [(str(table["table"]).replace("/", "."), table, result) for result in results for table in _tables(result)]
    matches = [one for one in tables if one[0] == asset] or [one for one in tables if one[0].endswith(f".{asset}")]
    if len({name for name, _, _ in matches}) != 1:
        return None
    _, table, result = matches[-1]
    return {**table, "epochs": result.get("epochs"), "is_new": bool(result.get("run"))}


def _tables(result: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    published: Iterable[Mapping[str, Any]] = result.get("published", ())
    return published
