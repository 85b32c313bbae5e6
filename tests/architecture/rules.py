"""The rules of the architecture: the design page's table of layers as data, and checks of imports and purity."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, NamedTuple

from rewindow.app.lint import STATE, banned_names
from rewindow.control.project_source import imports_in
from tests.architecture.set_order import iterated_sets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Layer(NamedTuple):
    """What a layer may import besides itself, `errors` and the standard library."""

    ours: frozenset[str]
    third_party: frozenset[str]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _layer(ours: str, third_party: str = "") -> Layer:
    return Layer(_words(ours), _words(third_party))


LAYERS = {
    "errors": _layer(""),
    "streams": _layer(""),
    "dsl": _layer("streams"),
    "contracts": _layer("streams"),
    "config": _layer("contracts streams", "pydantic pydantic_core yaml pendulum"),
    "storage": _layer("streams", "pyarrow obstore tzdata"),
    "engine/worker": _layer("contracts dsl storage streams", "pyarrow numpy"),
    "engine/spark": _layer("contracts engine/worker storage streams", "pyspark py4j pyarrow numpy"),
    # Commands go from protocol to protocol: Spark and Delta reach them as arguments. `storage` is for heartbeats.
    "control": _layer("config contracts storage streams", "pendulum psutil"),
    "tables/shared": _layer("contracts control streams", "pyarrow numpy"),
    "tables/delta": _layer("contracts control storage streams tables/shared", "deltalake pyarrow numpy"),
    "tables/governed": _layer(
        "contracts control engine/spark engine/worker storage streams tables/shared", "pyspark pyarrow numpy"
    ),
    "report": _layer("contracts control streams", "jinja2 markupsafe svg"),
    "testing": _layer("contracts dsl storage streams", "yaml hypothesis"),
    "airflow": _layer("config contracts databricks storage tables/delta", "airflow pendulum"),
    "databricks": _layer("", "databricks"),
    "app": _layer(
        "config contracts control databricks dsl engine/spark engine/worker report storage streams tables/delta tables/governed "
        "tables/shared testing",
        "typer click rich croniter pendulum psutil structlog pyspark pyarrow pandas markupsafe openlineage opentelemetry",
    ),
    "public": _layer("app dsl streams"),
}
MODULES = {"__init__": "public", "__main__": "app", "errors": "errors"}
"""The unit of each module in the package's root. There are no others."""

PURE = _words("streams dsl contracts control/plan control/ingest control/health")
# Modules for clocks, randomness and the machine. No pure layer imports them.
BANNED_MODULES = _words(
    "asyncio concurrent locale logging multiprocessing os pathlib platform random secrets socket subprocess sys "
    "tempfile threading time uuid zoneinfo"
)
BANNED_CALLS = _words("hash input open eval exec __import__")
"""Calls that no pure layer makes, besides those that `rewindow check` finds."""
FLUENT = _words(
    "dsl/aggregating dsl/branched dsl/cogrouped dsl/finals dsl/graph dsl/grouped dsl/grouped_table dsl/joins dsl/record_verbs "
    "dsl/stream dsl/table dsl/table_joins dsl/windowed"
)
"""Modules whose types refer to each other, because fluent classes return each other. At run time, imports go one way."""
COMMANDS_ELSEWHERE = _words("app/wheel_task")
"""Modules outside app/cli that are started as a command, so they end as the command line does."""
CONNECT_UNSAFE = _words("_jvm _jsc _jsparkSession _sc rdd sparkContext _jdf")


def layer_of(path: str) -> str | None:
    """Return the unit of a file, given its path below lib/rewindow, or None if it has none yet."""
    return _unit(path.removesuffix(".py").split("/"))


def _unit(parts: list[str]) -> str | None:
    if len(parts) == 1:
        return MODULES.get(parts[0]) or (parts[0] if parts[0] in LAYERS else None)
    return next((name for name in ("/".join(parts[:2]), parts[0]) if name in LAYERS), None)


def is_pure(path: str) -> bool:
    """Return whether a file belongs to a pure folder: no clock, no randomness, no I/O."""
    return any(path.startswith(f"{folder}/") for folder in PURE)


def wrong_imports(path: str, source: str) -> list[str]:
    """Name each import that the table does not allow."""
    name = layer_of(path)
    if name is None:
        is_bare = path.endswith("/__init__.py") and not list(_imports(ast.parse(source)))
        return (
            []
            if is_bare
            else [f"{path}: has no layer: give it one in tests/architecture/rules.py and in docs/internals/design.md"]
        )
    layer = LAYERS[name]
    found = []
    for line, module in _imports(ast.parse(source)):
        top, *rest = module.split(".")
        if top == "rewindow":
            other = _layer_of_import(rest)
            if other not in {name, "errors", *layer.ours}:
                found.append(f"{path}:{line}: {name} may not import {module} ({other})")
        elif top not in sys.stdlib_module_names and top not in layer.third_party:
            found.append(f"{path}:{line}: {name} may not import {module}")
    return found


def _layer_of_import(parts: list[str]) -> str | None:
    return _unit(parts) if parts else "public"


def _imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def impurities(path: str, source: str) -> list[str]:
    """Name each use of a clock, randomness, the machine or set order."""
    tree = ast.parse(source)
    found = [
        f"{path}:{line}: imports {module}: pure layers use no clock, no randomness and no I/O"
        for line, module in _imports(tree)
        if module.split(".")[0] in BANNED_MODULES
    ]
    found += [
        f"{path}:{node.lineno}: calls {ast.unparse(node.func)}()"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in BANNED_CALLS
    ]
    names = banned_names(tree, imports_in(tree, ()))
    found += [f"{path}:{line}: uses {name}" for line, code, name in names if code != STATE]
    return found + [
        f"{path}:{node.lineno}: iterates over a set ({ast.unparse(node)[:40]})" for node in iterated_sets(tree)
    ]


def connect_unsafe(path: str, source: str) -> list[str]:
    """Name each attribute that Spark Connect does not have."""
    return [
        f"{path}:{node.lineno}: .{node.attr} does not exist in Spark Connect: only engine/spark/session.py may use it"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and node.attr in CONNECT_UNSAFE
    ]


def imports_of_cli(path: str, source: str) -> list[str]:
    """Name each import of the command line by a module of app that is not part of it."""
    module = _module(path)
    if not module.startswith("app/") or module.startswith("app/cli/") or module in COMMANDS_ELSEWHERE:
        return []
    found = [name.split("/") for name in _our_imports(source, with_types=True) if name.startswith("app/cli/")]
    return [f"{path}: imports app.cli.{name[2]}: move what both need into app" for name in found]


def import_cycles(sources: Mapping[str, str], *, with_types: bool) -> list[list[str]]:
    """Return the sorted groups of modules that import each other. Imports inside functions count.

    ``sources`` maps paths below lib/rewindow to their text. ``with_types`` also follows imports under TYPE_CHECKING.
    """
    modules = {_module(path) for path in sources}
    graph = {
        _module(path): {
            name if name in modules else name.rpartition("/")[0] for name in _our_imports(source, with_types=with_types)
        }
        & modules
        for path, source in sources.items()
    }
    below = {module: _reachable(graph, module) for module in graph}
    groups = {frozenset(other for other in below[module] if module in below[other]) for module in graph}
    return sorted(sorted(group) for group in groups if group)


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__")


def _our_imports(source: str, *, with_types: bool) -> Iterator[str]:
    """Yield the paths of the imported modules. ``from a import b`` yields ``a/b``, whatever ``b`` is."""
    tree = ast.parse(source)
    only_types = set() if with_types else _imports_of_types(tree)
    for node in ast.walk(tree):
        if node in only_types:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.partition(".")[2].replace(".", "/") for name in names if name.startswith("rewindow."))


def _imports_of_types(tree: ast.AST) -> set[ast.AST]:
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    return {node for block in blocks for statement in block.body for node in ast.walk(statement)}


def _reachable(graph: Mapping[str, set[str]], module: str) -> set[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found
