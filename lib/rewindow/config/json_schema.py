"""The JSON Schema of the YAML files, made from the models that read them.

With it, editors complete, explain and check the files.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel

from rewindow.config.feed import FeedConfig
from rewindow.config.job import JobConfig
from rewindow.config.target import TargetConfig

Kind = Literal["feed", "job", "target"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_MODELS: Final[Mapping[str, type[BaseModel]]] = {"feed": FeedConfig, "job": JobConfig, "target": TargetConfig}


def schema_of(kind: Kind) -> dict[str, Any]:
    """Return the schema of ``conf/<kind>s/<name>.yaml``.

    It accepts every file that the loader accepts. It refuses unknown keys, missing keys, and values of a wrong type or form.
    Only the loader checks rules between keys.
    """
    model = _MODELS[kind]
    schema = model.model_json_schema()
    described = {one.__name__: _descriptions(one) for one in _models(model)}
    for name, part in {model.__name__: schema, **schema.get("$defs", {})}.items():
        for key, value in part.get("properties", {}).items():
            if text := described[name].get(key):
                value["description"] = text
    _tidy(schema)
    heading = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"conf/{kind}s/NAME.yaml of rewindow",
    }
    return {**heading, **schema}


def schema_text(kind: Kind) -> str:
    """Return the schema as the text of a JSON file."""
    return json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n"


def modeline(kind: Kind) -> str:
    """Return the comment that tells editors where the schema of a file in ``conf/<kind>s`` is."""
    return f"# yaml-language-server: $schema=../schemas/{kind}.json\n"


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a model and the models of the blocks in it."""
    yield model
    waiting: list[Any] = [field.annotation for field in model.model_fields.values()]
    while waiting:
        annotation = waiting.pop()
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _models(annotation)
        waiting += get_args(annotation)


def _descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings below the fields of a model, by key."""
    (found,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    body = found.body if isinstance(found, ast.ClassDef) else []
    texts = {}
    for statement, following in pairwise(body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            name = statement.target.id
            texts[model.model_fields[name].alias or name] = str(following.value.value)
    return texts


def _tidy(schema: Any) -> None:
    """Remove generated titles, and defaults that are not valid YAML.

    In objects whose keys have a pattern, allow only keys that match it.
    """
    if isinstance(schema, list):
        for part in schema:
            _tidy(part)
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("title"), str):
        del schema["title"]
    if schema.get("default", 0) is None or isinstance(schema.get("default"), dict | list):
        del schema["default"]
    if isinstance(schema.get("description"), str):
        schema["description"] = " ".join(schema["description"].replace("``", "`").split())
    if "patternProperties" in schema:
        schema["additionalProperties"] = False
    for part in schema.values():
        _tidy(part)
