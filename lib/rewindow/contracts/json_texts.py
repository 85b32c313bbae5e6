"""Columns of a job's output whose texts are canonical JSON, as its run recorded them: marks in the schema of the table.

A table has no type for such a value, so its column is text there. The feed that lands it restores the type.
"""

from __future__ import annotations

import json
from collections.abc import Collection

_MARK = "rewindow.type"
_JSON = "json"


def marked(schema: str, names: Collection[str]) -> str:
    """Return a schema (Spark's JSON) in which some columns are marked."""
    parsed = json.loads(schema)
    for field in parsed["fields"]:
        if field["name"] in names:
            field["metadata"] = {**field.get("metadata", {}), _MARK: _JSON}
    return json.dumps(parsed)


def json_texts(schema: str) -> frozenset[str]:
    """Return the columns that are marked in a schema."""
    fields = json.loads(schema)["fields"]
    return frozenset(field["name"] for field in fields if field.get("metadata", {}).get(_MARK) == _JSON)
