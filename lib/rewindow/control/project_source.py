"""The source code of a project: the topology that ``module:function`` builds, the names that modules bind, and digests of code.

A digest covers only the syntax tree. Comments, docstrings, formatting and positions do not count, and every supported Python
version gives the same digest.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from inspect import iscoroutinefunction
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from rewindow.errors import ConfigError, RewindowError, missing_function
from rewindow.streams.error_context import line_of
from rewindow.streams.topology import Topology

_MODULE = "<module>"
"""The name for the statements of a module that bind no name."""

_IGNORED = frozenset(["ctx", "kind", "type_comment"])
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)


class Unit(NamedTuple):
    """A name at the top level of a module that a function, a class or an assignment binds."""

    module: str
    name: str


def digest(*nodes: ast.AST) -> str:
    """Return 16 hexadecimal digits of the SHA-256 of syntax trees."""
    return hashlib.sha256("\n".join(map(_canonical, nodes)).encode()).hexdigest()[:16]


def _canonical(value: object) -> str:
    if isinstance(value, ast.Constant):
        return f"{type(value.value).__name__}:{value.value!r}"
    if isinstance(value, ast.AST):
        fields: list[tuple[str, Any]] = [(name, getattr(value, name, None)) for name in value._fields]
        fields = [(name, part) for name, part in fields if name not in _IGNORED]
        if isinstance(value, (*_DEFINITIONS, ast.Module)):
            fields = [(name, _without_docstring(part) if name == "body" else part) for name, part in fields]
        # Empty fields are left out, because Python 3.12 added fields that older versions do not have.
        shown = [f"{name}={_canonical(part)}" for name, part in fields if part is not None and part != []]
        return f"{type(value).__name__}({','.join(shown)})"
    if isinstance(value, list):
        return f"[{','.join(map(_canonical, value))}]"
    return repr(value)


def _digests(unit: Unit, statements: list[ast.stmt]) -> dict[Unit, str]:
    """Return the digest of a unit. For a class, also return a digest of each method, so that a difference names the method."""
    only = statements[0]
    if len(statements) > 1 or not isinstance(only, ast.ClassDef):
        return {unit: digest(*statements)}
    methods = [statement for statement in only.body if isinstance(statement, _FUNCTIONS)]
    rest = [statement for statement in _without_docstring(only.body) if not isinstance(statement, _FUNCTIONS)]
    digests = {unit: digest(*only.bases, *only.keywords, *only.decorator_list, *rest)}
    # Several functions of a class may have the same name, such as a property and its setter.
    for name in dict.fromkeys(method.name for method in methods):
        digests[Unit(unit.module, f"{unit.name}.{name}")] = digest(
            *(statement for statement in methods if statement.name == name)
        )
    return digests


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a body without the docstring. There may be none left."""
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
    return body


class Module:
    """One module of the project."""

    def __init__(self, name: str, file: Path, shown: str) -> None:
        """``shown``: the file's name in messages. Raises `ConfigError` (78) for a file that cannot be read or parsed."""
        self.name, self.file, self.shown = name, file, shown
        try:
            self.tree = ast.parse(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, SyntaxError, ValueError) as error:
            raise ConfigError(
                "project-file-unreadable",
                "{file}: the code cannot be read: {reason}. Fix the file",
                file=shown,
                reason=error,
            ) from error

    @cached_property
    def bindings(self) -> dict[str, list[ast.stmt]]:
        """Maps each name to the top-level statements that bind it. `_MODULE` has the statements that bind no name."""
        binding: dict[str, list[ast.stmt]] = {}
        for statement in _without_docstring(self.tree.body):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            for name in sorted(set(_bound(statement))) or [_MODULE]:
                binding.setdefault(name, []).append(statement)
        return binding

    @property
    def package(self) -> list[str]:
        """The parts of the name of the module's package, from which relative imports start."""
        parts = self.name.split(".")
        return parts if self.file.name == "__init__.py" else parts[:-1]

    @cached_property
    def imports(self) -> dict[str, tuple[str, str | None]]:
        """See `imports_in`."""
        return imports_in(self.tree, self.package)


def imports_in(tree: ast.Module, package: Sequence[str]) -> dict[str, tuple[str, str | None]]:
    """Return what imports bind, at any depth: each name with its (module, attribute).

    If attribute is None, the name is the module itself.
    """
    imports: dict[str, tuple[str, str | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                imports[alias.asname or top] = (alias.name if alias.asname else top, None)
        elif isinstance(node, ast.ImportFrom):
            base = imported_module(node, package)
            imports.update({alias.asname or alias.name: (base, alias.name) for alias in node.names})
    return imports


def module_file(root: Path, name: str) -> Path | None:
    """Return the file of a project's module, or None if the project has no such module."""
    path = root.joinpath(*name.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if name and file.is_file():
            return file
    return None


def imported_module(node: ast.ImportFrom, package: Sequence[str]) -> str:
    """Return the module that a from-import names. A relative import starts at ``package``, the parts of the package's name."""
    kept = package[: len(package) + 1 - node.level] if node.level else ()
    return ".".join((*kept, *([node.module] if node.module else [])))


def _bound(statement: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds in its scope."""
    if isinstance(statement, _DEFINITIONS):
        yield statement.name
        return
    if isinstance(statement, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return
    if isinstance(statement, ast.Name) and isinstance(statement.ctx, ast.Store):
        yield statement.id
    for child in ast.iter_child_nodes(statement):
        yield from _bound(child)


class Source:
    """The modules of a project. Each is read when first used."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._modules: dict[str, Module | None] = {}

    def module(self, name: str) -> Module | None:
        """Return a module of the project; None for any other. Raises as `Module`."""
        if name not in self._modules:
            file = module_file(self._root, name)
            self._modules[name] = Module(name, file, str(file.relative_to(self._root))) if file else None
        return self._modules[name]

    def reached(self, module: Module, nodes: Iterable[ast.AST]) -> dict[Unit, str]:
        """Return the units that nodes of a module use, directly or through other units, with their digests."""
        digests: dict[Unit, str] = {}
        waiting = [unit for node in nodes for unit in self._references(module, node)]
        started: dict[str, None] = {}
        while waiting:
            unit = waiting.pop()
            module_of_unit = self.module(unit.module)
            if module_of_unit is None or unit in digests or unit.name not in module_of_unit.bindings:
                continue
            statements = module_of_unit.bindings[unit.name]
            digests.update(_digests(unit, statements))
            # If the module is imported, its statements that bind no name run, too.
            if unit.module not in started:
                started[unit.module] = None
                waiting.append(Unit(unit.module, _MODULE))
            waiting += [other for statement in statements for other in self._references(module_of_unit, statement)]
        return digests

    def _references(self, module: Module, node: ast.AST) -> Iterator[Unit]:
        parents = {id(part.value): part for part in ast.walk(node) if isinstance(part, ast.Attribute)}
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                if part.id in module.bindings:
                    yield Unit(module.name, part.id)
                elif part.id in module.imports:
                    chain, step = [], parents.get(id(part))
                    while step is not None:
                        chain.append(step.attr)
                        step = parents.get(id(step))
                    yield from self._imported(*module.imports[part.id], chain)
        # Any name may come from `from module import *`.
        if "*" in module.imports:
            yield from self._whole(module.imports["*"][0])

    def _imported(self, base: str, attribute: str | None, chain: list[str]) -> Iterator[Unit]:
        """Yield the units that an imported name refers to.

        ``chain``: the attributes that the code reads from the name, in order.
        """
        path = [*([attribute] if attribute else []), *chain]
        while path and self.module(f"{base}.{path[0]}") is not None:
            base, path = f"{base}.{path[0]}", path[1:]
        module = self.module(base)
        if module is None:
            return
        if not path:
            # The code uses the module itself as a value, so it may use any unit of the module.
            yield from self._whole(base)
        elif path[0] in module.bindings:
            yield Unit(base, path[0])
        elif path[0] in module.imports:
            yield from self._imported(*module.imports[path[0]], path[1:])

    def _whole(self, name: str) -> Iterator[Unit]:
        module = self.module(name)
        if module is not None:
            yield from (Unit(name, bound) for bound in module.bindings)


@dataclass(frozen=True, slots=True)
class TopologyLoader:
    """A callable that builds a job's topology from its reference ``module:function``. It is pickled to be sent to workers."""

    job: str
    reference: str
    root: str
    """The project's folder, from which ``jobs`` is imported."""

    def __call__(self) -> Topology:
        """Return a new topology. Raises `ConfigError` (78) if it cannot be loaded or built."""
        module_name, _, function_name = self.reference.partition(":")
        build = getattr(self._module(module_name), function_name, None)
        if not callable(build):
            raise missing_function(module_name, function_name).surrounded(f"job {self.job!r}: ")
        if iscoroutinefunction(build):
            raise ConfigError(
                "topology-function-async",
                "job {job!r}: {topology} is `async`: write `def {function}` without it",
                job=self.job,
                topology=self.reference,
                function=function_name,
            )
        try:
            # Standard output is only for what the command itself writes, such as JSON.
            with redirect_stdout(sys.stderr):
                topology = build()
        except RewindowError as error:
            error.at_line(line_of(error))
            raise
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}{_instead(error)}"
            raise ConfigError(
                "topology-function-failed",
                "job {job!r}: {topology} failed with {reason}",
                job=self.job,
                topology=self.reference,
                reason=reason,
            ).at_line(line_of(error)) from error
        if not isinstance(topology, Topology):
            raise ConfigError(
                "topology-not-returned",
                "job {job!r}: {topology} returned an instance of {type}: return builder.build()",
                job=self.job,
                topology=self.reference,
                type=type(topology).__name__,
            )
        return topology

    def _module(self, name: str) -> ModuleType:
        if self.root not in sys.path:
            sys.path.insert(0, self.root)
        try:
            with redirect_stdout(sys.stderr):
                return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):
                raise ConfigError(
                    "topology-import-missing",
                    "job {job!r}: cannot import {module!r}: {reason}. Fix the import, or install the module",
                    job=self.job,
                    module=name,
                    reason=str(error),
                ).at_line(line_of(error)) from error
            fix = "Write the module without .py" if name.endswith(".py") else "Fix `topology:` or the import"
            raise ConfigError(
                "topology-module-missing",
                "job {job!r}: cannot import {module!r} from {project}: {reason}. {fix}",
                job=self.job,
                module=name,
                project=self.root,
                reason=str(error),
                fix=fix,
            ) from error
        except SyntaxError as error:
            raise ConfigError(
                "topology-syntax-invalid",
                "job {job!r}: {file}:{line}: {reason}. Fix that line",
                job=self.job,
                file=error.filename,
                line=error.lineno,
                reason=error.msg,
            ) from error
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}"
            raise ConfigError(
                "topology-import-failed",
                "job {job!r}: importing {module!r} failed with {reason}. Fix the module: workers import it too",
                job=self.job,
                module=name,
                reason=reason,
            ).at_line(line_of(error)) from error


def _instead(error: BaseException) -> str:
    """Return the advice to use an existing method, as the end of a message: ``group_by_key`` instead of ``groupByKey``."""
    if not isinstance(error, AttributeError) or not error.name:
        return ""
    verbs = [name for name in dir(error.obj) if not name.startswith("_")]
    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", error.name).lower()
    near = get_close_matches(snake, verbs, 1)
    if near:
        return f": write {near[0]}"
    return ": call to_stream() before it" if "to_stream" in verbs else ""
