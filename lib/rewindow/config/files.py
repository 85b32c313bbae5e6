"""Read one YAML file: small, without tags, aliases or templates. Errors name file, key and fix."""

from __future__ import annotations

import difflib
import stat
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
    """Return the file as a validated model. ``shown`` is the file's name in messages.

    Raises `ConfigError` (78) with one line per wrong key, and `AccessError` (77) if access to the file is denied.
    """
    data = read_yaml(path, shown)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = [f"{shown}: {_sentence(detail, model)}" for detail in error.errors(include_url=False)]
        raise ConfigError("\n".join(lines)) from None


def read_yaml(path: Path, shown: str) -> dict[str, Any]:
    """Return the file's mapping. Raises `ConfigError` (78) unless it is a small YAML mapping without templates."""
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):  # reading a pipe would never end
            raise ConfigError(f"{shown} is not a regular file: replace it with one")
        if facts.st_size > MAX_BYTES:
            raise ConfigError(f"{shown} is larger than {MAX_BYTES:,} bytes: is this the right file?")
        text = path.read_text(encoding="utf-8")
    except PermissionError as error:
        raise AccessError(f"no permission to read {shown}: {error.strerror}") from error
    except OSError as error:
        raise ConfigError(f"cannot read {shown}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown} is not UTF-8 (byte {error.start}): save it as UTF-8") from error
    try:
        data = yaml.load(text, _Loader)  # noqa: S506  # stricter than a SafeLoader
    except yaml.MarkedYAMLError as error:
        where = f", line {error.problem_mark.line + 1}" if error.problem_mark is not None else ""
        raise ConfigError(f"{shown}{where}: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:  # an unprintable character, a date such as 2013-02-31
        raise ConfigError(f"{shown} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{shown} is not a mapping of keys to values: write lines like `partitions: 8`")
    _refuse_templates(data, shown, ())
    return data


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses aliases (which can expand without bound), duplicate keys and deep nesting."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise self._refusal("aliases (*name) are not supported: write the value out")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self._refusal(f"more than {MAX_DEPTH} levels deep: is this the right file?")
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
                raise yaml.MarkedYAMLError(problem=f"duplicate key {name!r}", problem_mark=key.start_mark)
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
        raise ConfigError(
            f"{shown}: {key} contains a template ({{{{), which is not rendered here: write the value itself"
        )


def _sentence(detail: ErrorDetails, model: type[BaseModel]) -> str:
    """Describe one wrong key. Only the messages of `field_types` may show a value, so that no secret is printed."""
    where = detail["loc"]
    key = ".".join(str(part) for part in where)
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(key, str(where[-1]), known_keys(model, where[:-1]))
    if kind == "missing":
        return f"{key} is missing: add it"
    if kind == "literal_error":
        return f"{key} must be {context['expected']}"
    if kind in ("dict_type", "model_type"):
        return f"{key} must be a block of keys with values"
    problem = str(context.get("error", detail["msg"]))
    problem = problem[0].lower() + problem[1:] if problem.startswith("Input") else problem
    return f"{key}: {problem}" if key else problem


def _unknown_key(key: str, last: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(last, known, n=1)
    suggestion = f"did you mean {close[0]}? " if close else ""
    return f"{key} is not a known key: {suggestion}Known keys: {', '.join(known)}"


def known_keys(model: type[BaseModel], where: Sequence[int | str]) -> list[str]:
    """Return the keys that a file may have below the path ``where``, as written in YAML."""
    for step in where:
        names = {field.alias or name: field for name, field in model.model_fields.items()}
        field = names.get(str(step))
        if field is not None:  # otherwise `step` is a key of a mapping, so the model stays
            model = next(iter(_models(field.annotation)), model)
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]
