"""The shapes of configuration values as JSON Schema, for editors: each accepts at least what `field_types` accepts."""

from __future__ import annotations

from typing import Any, Final

_PART = r"[A-Za-z_][A-Za-z0-9_-]*"
_NOT_IN_COLUMNS = r"\u0000-\u001f\s!-/:-@\[-^`{-~"
"""Spaces and ASCII punctuation without the underscore. Letters of all scripts are allowed."""

NAME: Final[dict[str, Any]] = {"type": "string", "maxLength": 200, "pattern": f"^{_PART}$"}
DOTTED: Final[dict[str, Any]] = {"type": "string", "maxLength": 200, "pattern": rf"^{_PART}(\.{_PART})*$"}
FUNCTION: Final[dict[str, Any]] = {
    "type": "string",
    "maxLength": 200,
    "pattern": r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$",
}
TEXT: Final[dict[str, Any]] = {"type": "string", "maxLength": 200, "pattern": r"^[^\u0000-\u001f\u007f]+$"}
COLUMN: Final[dict[str, Any]] = {
    "type": "string",
    "maxLength": 200,
    "pattern": f"^[^0-9{_NOT_IN_COLUMNS}][^{_NOT_IN_COLUMNS}]*$",
}
COLUMNS: Final[dict[str, Any]] = {"type": "array", "items": COLUMN, "minItems": 1, "uniqueItems": True}
FIELDS: Final[dict[str, Any]] = {"type": "array", "items": TEXT, "minItems": 1}
SCALAR: Final[dict[str, Any]] = {"type": ["string", "number", "boolean"]}
INTERVAL: Final[dict[str, Any]] = {
    "type": "string",
    "pattern": "^([1-9][0-9]{0,5}(mo|ms|[smhdwy])|([0-9]{1,6}(ms|[smh]))+)$",
}
POLICY: Final[dict[str, Any]] = {
    "type": "string",
    "pattern": "^(fail|quarantine|retry [1-9][0-9]{0,2}( quarantine)?)$",
}
CRON: Final[dict[str, Any]] = {
    "type": "string",
    "pattern": r"^(@(hourly|daily|weekly|monthly|yearly)|([A-Za-z0-9*/,#?L-]+ +){4}[A-Za-z0-9*/,#?L-]+)$",
}
BYTES: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "integer", "minimum": 1 << 20},
        {"type": "string", "pattern": r"^\s*[0-9]*\.?[0-9]+\s*[A-Za-z]*\s*$"},
    ]
}
SPARK_KEY: Final = r"^spark\.[A-Za-z0-9_.-]+$"
STORAGE_KEY: Final = "^(AWS|AZURE|GOOGLE)_[A-Z0-9_]+$"


def duration(*words: str) -> dict[str, Any]:
    """Return the schema of a duration. ``words`` may be written instead of one."""
    length = {"type": "string", "pattern": r"^\s*(0|([0-9]{1,19}(ms|[smhdw]))+)\s*$"}
    return {"anyOf": [{"const": 0}, length, *({"const": word} for word in words)]}


def settings(key: str) -> dict[str, Any]:
    """Return the schema of settings by name. ``key`` is the pattern of names."""
    return {"type": "object", "patternProperties": {key: SCALAR}, "additionalProperties": False}
