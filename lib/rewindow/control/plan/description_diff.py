"""Compare what topologies say of their nodes and stores (`Topology.describe`), parameter by parameter. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rewindow.streams.duration import in_words

_STORE_PARTS: Final = {"retention_ms": "retention", "window_size_ms": "window size", "holds_ms": "holds"}
"""Durations in the description of nodes and stores, by the names that users see."""


def changed_parameters(name: str, before: str, now: str) -> list[str]:
    """Return what differs between two descriptions of a node: ``grace of NAME changed: 6h -> 12h``.

    Descriptions of different kinds of nodes are one difference.
    """
    verb, parameters = _parsed(before)
    other_verb, others = _parsed(now)
    if verb != other_verb or parameters.keys() != others.keys() or not parameters:
        return [f"{name} changed: {before or 'no description'} -> {now or 'no description'}"]
    different = [key for key in parameters if parameters[key] != others[key]]
    return [f"{f'{key} of ' if key else ''}{name} changed: {parameters[key]} -> {others[key]}" for key in different]


def named_duration(part: str, value: Any) -> tuple[str, str] | None:
    """Return a duration's name and words as users see them; None for a part that is no duration."""
    if part not in _STORE_PARTS:
        return None
    return _STORE_PARTS[part], "none" if value is None else in_words(value)


def _parsed(description: str) -> tuple[str, Mapping[str, str]]:
    """Return the verb of ``verb(what, key=value, ...)`` and its parameters; all that have no name are one, named ``""``.

    Without parameters, or with two of one name, the mapping is empty.
    """
    verb, bracket, rest = description.partition("(")
    if not bracket or not rest.endswith(")"):
        return description, {}
    parameters: dict[str, str] = {}
    for part in _split(rest[:-1]):
        key, is_named, value = part.partition("=")
        if not is_named or not key.isidentifier():
            key, value = "", ", ".join([*([parameters[""]] if "" in parameters else []), part])
        elif key in parameters:
            return verb, {}
        parameters[key] = value
    return verb, parameters


def _split(text: str) -> Iterator[str]:
    """Yield the parts between commas that are in no parentheses."""
    depth, part = 0, ""
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            yield part.strip()
            part = ""
        else:
            part += character
    if part.strip():
        yield part.strip()
