"""Reading one YAML file: small, without tags, aliases or templates, and every mistake named by file, key and fix."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from rewindow.errors import AccessError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pydantic_core import ErrorDetails

MAX_BYTES = 1_000_000
MAX_DEPTH = 20

Model = TypeVar("Model", bound=BaseModel)


def read_model(path: Path, shown: str, model: type[Model]) -> Model:
    """Return the file as a checked value. ``shown`` is how messages call the file.

    Raises `ConfigError` that names every wrong key and its fix, one a line; `AccessError` if the file may not be read.
    """
    data = read_yaml(path, shown)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = [f"{shown}: {_sentence(detail, model)}" for detail in error.errors(include_url=False)]
        raise ConfigError("\n".join(lines)) from None


def read_yaml(path: Path, shown: str) -> dict[str, Any]:
    """Return the file's mapping. Raises `ConfigError` for all that is no plain, small YAML mapping."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{shown} is larger than {MAX_BYTES:,} bytes: configuration is small, is this the file?")
        text = path.read_text(encoding="utf-8")
    except PermissionError as error:
        raise AccessError(f"{shown} may not be read: {error.strerror}") from error
    except OSError as error:
        raise ConfigError(f"{shown} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown} is not UTF-8 (byte {error.start}): save it as UTF-8") from error
    try:
        data = yaml.load(text, _Loader)  # noqa: S506  # a SafeLoader that takes even less
    except yaml.MarkedYAMLError as error:
        where = f", line {error.problem_mark.line + 1}" if error.problem_mark is not None else ""
        raise ConfigError(f"{shown}{where}: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:  # an unprintable character, a date such as 2013-02-31
        raise ConfigError(f"{shown} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{shown} is no mapping of keys to values: write it like `partitions: 8`")
    _refuse_templates(data, shown, ())
    return data


class _Loader(yaml.SafeLoader):
    """YAML without what can surprise: no aliases (they can grow without bound), no key twice, no deep nests."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise self._refusal("an alias (*name) is not taken here: write the value out")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self._refusal(f"more than {MAX_DEPTH} levels deep: configuration is flat, is this the file?")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def _refusal(self, problem: str) -> yaml.MarkedYAMLError:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # PyYAML's
        return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002  # PyYAML's
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {name!r} is there twice", problem_mark=key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep=deep)


def _refuse_templates(value: object, shown: str, where: tuple[object, ...]) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_templates(key, shown, where)
            _refuse_templates(item, shown, (*where, key))
    elif isinstance(value, list):
        for item in value:
            _refuse_templates(item, shown, where)
    elif isinstance(value, str) and "{{" in value:
        key = ".".join(str(part) for part in where) or "a key"
        raise ConfigError(f"{shown}: {key} holds a template ({{{{): nothing fills it in here, write the value itself")


def _sentence(detail: ErrorDetails, model: type[BaseModel]) -> str:
    """Say what is wrong with one key. A value is shown by the words' own messages only, so no secret is."""
    where = detail["loc"]
    key = ".".join(str(part) for part in where)
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(key, str(where[-1]), known_keys(model, where[:-1]))
    if kind == "missing":
        return f"{key} is missing: add it"
    if kind == "literal_error":
        return f"{key} must be {context['expected']}"
    said = str(context.get("error", detail["msg"]))
    said = said[0].lower() + said[1:] if said.startswith("Input") else said
    return f"{key}: {said}" if key else said


def _unknown_key(key: str, last: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(last, known, n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    return f"{key} is no key here: {meant}Known: {', '.join(known)}"


def known_keys(model: type[BaseModel], where: Sequence[int | str]) -> list[str]:
    """Return the keys that a file may have at a place, as they are written."""
    for step in where:
        names = {field.alias or name: field for name, field in model.model_fields.items()}
        field = names.get(str(step))
        if field is not None:  # else the key of a mapping, whose model was found one step before
            model = next(iter(_models(field.annotation)), model)
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]
