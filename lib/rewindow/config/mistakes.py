"""Find what is wrong with the keys and values of a file, with the nearest word that is known."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from rewindow.config.field_types import MisfitError
from rewindow.config.yaml_text import Document, Mistake, position_of
from rewindow.errors import ConfigError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_NUMBER = re.compile(r"0|[1-9][0-9]*")
_Keys = tuple[int | str, ...]

_TYPES = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "string_type": "text",
    "list_type": "a list, like [a, b]",
    "dict_type": "a block of keys, one `key: value` in a line",
    "model_type": "a block of keys, one `key: value` in a line",
}


def mistakes_of(error: ValidationError, model: type[BaseModel], document: Document) -> Iterator[Mistake]:
    """Yield what is wrong with a file that does not fit a model."""
    details = error.errors(include_url=False)
    meant = {
        (*where[:-1], nearest(str(where[-1]), known_keys(model, where[:-1])))
        for where in (detail["loc"] for detail in details if detail["type"] == "extra_forbidden")
    }
    for detail in details:
        where = tuple(detail["loc"])
        if detail["type"] == "missing" and where in meant:
            continue  # the misspelt key is reported
        where, at_key = (where[:-1], True) if where[-1:] == ("[key]",) else (where, False)
        cause = detail.get("ctx", {}).get("error")
        exactly = (*where, *cause.keys) if isinstance(cause, MisfitError) else where
        position = position_of(
            document.root, exactly, at_key=at_key or detail["type"] in {"extra_forbidden", "missing"}
        )
        yield Mistake(position, _error(detail, where, model))


def nearest(word: str, known: Sequence[str]) -> str | None:
    """Return the known word that a misspelt one most likely stands for, or None."""
    lower = {name.lower(): name for name in reversed(known)}
    close = difflib.get_close_matches(word.lower().replace("-", "_"), lower, n=1) or difflib.get_close_matches(
        word.lower(), lower, n=1
    )
    return lower[close[0]] if close else None


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Return ``did you mean `x`? `` with the nearest known word, or nothing if none is near."""
    near = nearest(word, known)
    return f"did you mean `{near}`? " if near else ""


def _error(detail: ErrorDetails, where: _Keys, model: type[BaseModel]) -> ConfigError:
    """Return the error of one mistake. Only the messages of `field_types` may show a value, so that no secret is printed."""
    key = ".".join(str(step) for step in where)
    kind, context, given = detail["type"], detail.get("ctx", {}), detail.get("input")
    if kind == "extra_forbidden":
        return _unknown_key(key, where, model)
    if kind == "missing":
        return ConfigError("config-key-missing", "{key} is missing: add it", key=key)
    if kind == "literal_error":
        words = [word for word in context["expected"].replace(" or ", ", ").replace("'", "").split(", ") if word]
        hint = did_you_mean(given, words).strip() if isinstance(given, str) else ""
        return ConfigError(
            "config-value-not-allowed",
            "{key} must be {allowed}{hint}",
            key=key,
            allowed=context["expected"],
            hint=f": {hint}" if hint else "",
        )
    if given is None and kind != "value_error":
        is_block = kind in {"dict_type", "model_type"}
        return ConfigError(
            "config-value-empty",
            "{key} is empty: write its {what}, or remove it",
            key=key,
            what="keys below it, indented" if is_block else "value after the colon",
        )
    if kind == "too_short":
        return ConfigError("config-items-missing", "{key} must not be empty", key=key)
    if kind in _TYPES:
        is_quoted = kind == "int_type" and isinstance(given, str) and _NUMBER.fullmatch(given)
        return ConfigError(
            "config-type-wrong",
            "{key} must be {type}{fix}",
            key=key,
            type=_TYPES[kind],
            fix=": remove the quotes" if is_quoted else "",
        )
    if kind in {"greater_than_equal", "less_than_equal"}:
        low = "ge" in context
        return ConfigError(
            "config-number-out-of-range",
            "{key} must be at {bound} {limit:,}",
            key=key,
            bound="least" if low else "most",
            limit=context["ge" if low else "le"],
        )
    cause = context.get("error", detail["msg"])
    if isinstance(cause, MisfitError) or not key:
        block = f"{key}: " if key else ""
        return ConfigError("config-values-conflict", "{block}{problem}", block=block, problem=str(cause))
    return ConfigError("config-value-invalid", "{key}: {problem}", key=key, problem=str(cause))


_ELSEWHERE = {"spark": "Spark's settings belong to the target, conf/targets/NAME.yaml. "}


def _unknown_key(key: str, where: _Keys, model: type[BaseModel]) -> ConfigError:
    word, known = str(where[-1]), known_keys(model, where[:-1])
    hint = _ELSEWHERE.get(word, "") or did_you_mean(word, known)
    others = () if hint else [".".join(path) for path in _paths(model, ()) if path[-1] == word]
    fix = f"{hint}Known keys: {', '.join(known)}"
    if others:
        fix = f"it belongs to another block, as {' or '.join(others)}. {fix}"
    if word.partition(":")[0] in known:
        fix = "write a space after the colon"
    return ConfigError(
        "config-key-unknown",
        "{key} is not a known key{here}: {fix}",
        key=key,
        here=" here" if others else "",
        fix=fix,
    )


def known_keys(model: type[BaseModel], where: Sequence[int | str]) -> list[str]:
    """Return the keys that a file may have below the path ``where``, as written in YAML."""
    inner: Any = model
    for step in where:
        inner = _step(inner, str(step))
    found = _model(inner)
    return list(_fields(found)) if found else []


def _step(annotation: Any, step: str) -> Any:
    found = _model(annotation)
    if found is not None:
        return _fields(found).get(step)
    return get_args(annotation)[-1] if get_origin(annotation) in (dict, list) else None


def _model(annotation: Any) -> type[BaseModel] | None:
    parts = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    return next((part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), None)


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _paths(annotation: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all keys below a model. A mapping's key is written in capitals, as in messages."""
    found = _model(annotation)
    if found is None:
        if (inner := _step(annotation, "")) is not None:
            yield from _paths(inner, path if get_origin(annotation) is list else (*path, "NAME"))
        return
    for name, below in _fields(found).items():
        yield (*path, name)
        yield from _paths(below, (*path, name))
