"""The page of all configuration keys, from the models that read conf/."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ByteSize
from pydantic.fields import FieldInfo

from rewindow.config.feed import FeedConfig
from rewindow.config.job import JobConfig
from rewindow.config.target import TargetConfig
from rewindow.streams.duration import in_words
from tests.docs.markdown import GENERATED, in_one_line, table

HEAD = f"""\
# Configuration

A project's folder contains `conf/feeds/<feed>.yaml`, `conf/jobs/<job>.yaml` and `conf/targets/<target>.yaml`. A key without a
default is required. An unknown key is refused (78). Durations are text, such as `10m`, `1h30m` or `7d`. "none" as a default means
that nothing is set. In a key, `<name>` stands for a name of yours.

{GENERATED}
"""
FILES: tuple[tuple[str, type[BaseModel], str], ...] = (
    ("feeds", FeedConfig, "[Feeds](../guides/feeds.md)"),
    ("jobs", JobConfig, "[Jobs](../guides/jobs.md) and [Failures](../guides/failures.md)"),
    (
        "targets",
        TargetConfig,
        "[Cluster](../deployment/cluster.md), [Databricks](../deployment/databricks.md), [Buckets](../deployment/buckets.md)",
    ),
)
"""The folder, the model and the pages that explain the keys together."""
KINDS = {
    "Name": "name",
    "DottedName": "name",
    "OutputTable": "table",
    "Function": "`module:function`",
    "Column": "column",
    "OldColumn": "column",
    "Columns": "columns",
    "RowOrder": "`file` or columns",
    "Fields": "fields",
    "ColumnOrColumns": "column or columns",
    "TimestampSource": "column or function",
    "DurationMs": "duration",
    "DurationMsOrForever": "duration",
    "DurationMsOrNone": "duration",
    "EveryInterval": "interval",
    "Zone": "time zone",
    "Policy": "policy",
    "Cron": "schedule",
    "Location": "path or URI",
    "Bytes": "size",
    "Share": "percentage",
    "Allowed": "list",
    "Names": "column or columns",
    "UniqueNames": "`key` or columns",
    "Bound": "number or text",
    "Query": "query",
    "SparkText": "text",
    "SparkSettings": "settings",
    "StorageOptions": "settings",
    "int": "number",
    "str": "text",
}


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for folder, model, explained in FILES:
        rows = [row for _, row in rows_of(model)]
        parts.append(f"## conf/{folder}\n\n{in_one_line(model.__doc__)} More in {explained}.\n\n")
        parts.append(table(("key", "kind", "default", "meaning"), rows) + "\n")
    return "".join(parts).rstrip() + "\n"


def rows_of(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, tuple[str, str, str, str]]]:
    """Yield the path and the table row of each key of a model, and of the models in it."""
    sources = annotations_and_docstrings(model)
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        annotation, docstring = sources[name]
        meaning = field.description or docstring
        assert meaning, f"{model.__name__}.{name} needs a docstring: it is the key's meaning in the reference"
        inner = next((one for one in (field.annotation, *get_args(field.annotation)) if is_model(one)), None)
        is_map = inner is not None and get_origin(field.annotation) in (dict, list)
        kind = ("keys" if inner else "") or kind_of(annotation)
        yield path, (f"`{path}`", kind, "" if inner and not is_map else default_of(name, field), in_one_line(meaning))
        if inner is not None:
            yield from rows_of(inner, f"{path}.<{singular(path)}>." if is_map else f"{path}.")


def is_model(kind: Any) -> bool:
    """Return whether a type is a model with keys of its own."""
    return inspect.isclass(kind) and issubclass(kind, BaseModel)


def singular(path: str) -> str:
    """Return what names an entry of a mapping or a list."""
    return {"logs": "topic", "outputs": "topic", "expect": "number"}[path.rpartition(".")[2]]


def annotations_and_docstrings(model: type) -> dict[str, tuple[str, str]]:
    """Return the annotation and the docstring of each attribute, as written."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, tuple[str, str]] = {}
    last = ""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = node.target.id
            found[last] = (ast.unparse(node.annotation), "")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and last:
            found[last] = (found[last][0], str(node.value.value))
        else:
            last = ""
    return found


def kind_of(annotation: str) -> str:
    """Return the kind of a value in words: the choices, or what its type is called here."""
    shown = annotation.removesuffix(" | None").removeprefix("_")
    if shown.startswith("Literal["):
        return " or ".join(f"`{choice}`" for choice in ast.literal_eval(f"({shown[8:-1]},)"))
    if shown.startswith("Annotated["):
        return "text"
    if shown.startswith("dict["):
        return "names with values"
    if shown.startswith("list["):
        return "list"
    return KINDS[shown]


def default_of(name: str, field: FieldInfo) -> str:
    """Return the default as one would write it; empty if the key is required."""
    if field.is_required():
        return "required"
    value = field.default
    if value is None:
        return "forever" if name == "max_task_idle_ms" else "none"
    if name.endswith("_ms"):
        return f"`{in_words(value)}`" if value else "`0`"
    if isinstance(value, ByteSize):
        return f"`{value.human_readable().removesuffix('.0MiB')}MiB`".replace("MiBMiB", "MiB")
    if value in ({}, [], ()):
        return "none"
    return f"`{value:,}`" if isinstance(value, int) else f"`{value}`"
