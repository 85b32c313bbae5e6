"""Find code of a job that may make two runs differ.

The check only reads the source code. It executes nothing and does not know types. It finds three mistakes: wall clocks,
randomness, and state that outlives a call but is in no store. `rewindow verify` finds other mistakes, because it replays a run
and compares the rows. Misspelt columns and fields, and joins of unequal keys, are found when the job is bound to its feed
(`dsl.type_checks`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from rewindow.control.project_source import Module, Source, imported_module


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALLOW: Final = "# rewindow: allow"
"""The comment that accepts all findings in its line."""

CLOCK, RANDOM, STATE = "wall-clock", "randomness", "shared-state"

_INSTEAD: Final = {
    CLOCK: "use the record's timestamp, context.stream_time_ms or context.wall_clock_ms",
    RANDOM: "use context.random(), context.uuid() or context.idempotency_key()",
    STATE: "no checkpoint has it and workers do not share it: keep it in a store, context.store(name)",
}
_NAMES: Final = {
    CLOCK: "time.time time.time_ns time.monotonic time.monotonic_ns time.perf_counter time.perf_counter_ns time.localtime "
    "time.process_time time.process_time_ns time.gmtime time.ctime time.asctime datetime.datetime.now "
    "datetime.datetime.utcnow datetime.datetime.today datetime.date.today pendulum.now pendulum.today pandas.Timestamp.now",
    RANDOM: "random secrets numpy.random os.urandom uuid.uuid1 uuid.uuid4 uuid.uuid6 uuid.uuid7 uuid.getnode",
    STATE: "functools.cache functools.lru_cache",
}
_CODES: Final = {name: code for code, names in _NAMES.items() for name in names.split()}
_SEEDED: Final = ("random.Random", "numpy.random.default_rng")
"""Random generators that are deterministic if they are created with a seed."""

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BUILDS: Final = frozenset(("StreamsBuilder", "Topology"))
"""A function that uses one of these names builds the topology. Its variables outlive the calls of the functions that it
defines."""
_PROCESSORS: Final = ("Processor", "Transformer", "TransformerWithKey")
_BEGIN: Final = ("__init__", "init")
_END: Final = ("close", "__del__")
_PART: Final = "[]"
"""Stands for a subscript in the path of a changed value."""
_CHANGES: Final = _words(
    "append appendleft extend extendleft insert remove pop popleft popitem clear sort reverse rotate add discard update "
    "setdefault move_to_end subtract difference_update intersection_update symmetric_difference_update"
)
"""Methods that change the container on which they are called."""
_CHANGES_ARGUMENT: Final = _words("next setattr delattr heappush heappop heapify heapreplace heappushpop insort")
"""Functions that change their first argument."""
_MUTABLE: Final = _words("list dict set bytearray defaultdict OrderedDict Counter deque count iter")
"""Functions that return a mutable object."""


class Finding(NamedTuple):
    """A line that may make two runs differ. ``file`` is relative to the project, ``what`` is the expression at fault."""

    file: str
    line: int
    code: str
    what: str
    instead: str

    def __str__(self) -> str:
        """Return ``file:line: what: instead``."""
        return f"{self.file}:{self.line}: {self.what}: {self.instead}"


def lint(root: Path, files: Sequence[Path]) -> list[Finding]:
    """Check files and the modules of the project that they import. Return the findings, sorted by file and line.

    Raises `ConfigError` (78) for a file that cannot be read or parsed.
    """
    source, root = Source(root.resolve()), root.resolve()
    waiting = [_module(root, file.resolve()) for file in files]
    checked: dict[Path, Module] = {}
    while waiting:
        module = waiting.pop()
        if module.file not in checked:
            checked[module.file] = module
            waiting += _imports(source, module)
    return sorted({finding for module in checked.values() for finding in _unaccepted(module, source)})


def _module(root: Path, file: Path) -> Module:
    if not file.is_relative_to(root):
        return Module(file.stem, file, str(file))
    shown = file.relative_to(root)
    return Module(".".join(shown.with_suffix("").parts).removesuffix(".__init__"), file, str(shown))


def _imports(source: Source, module: Module) -> Iterator[Module]:
    """Yield the modules of the project that a module imports, and the packages that contain them."""
    for node in ast.walk(module.tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{imported_module(node, module.package)}.{alias.name}" for alias in node.names]
        for parts in (name.split(".") for name in names):
            loaded = (source.module(".".join(parts[:end])) for end in range(1, len(parts) + 1))
            yield from (module for module in loaded if module is not None)


def _unaccepted(module: Module, source: Source) -> Iterator[Finding]:
    """Yield the findings of a module, without those that a comment accepts."""
    lines = module.file.read_text(encoding="utf-8").splitlines()
    names = banned_names(module.tree, module.imports)
    for line, code, expression in (*names, *_shared_state(module, source)):
        if ALLOW not in lines[line - 1]:
            yield Finding(module.shown, line, code, expression, _INSTEAD[code])


def banned_names(tree: ast.Module, imports: Mapping[str, tuple[str, str | None]]) -> Iterator[tuple[int, str, str]]:
    """Yield line, finding code and qualified name of each use of a clock, of randomness or of a cache.

    ``imports`` maps each imported name to its module and attribute. The attribute is None if the name is the module.
    """
    nodes = list(ast.walk(tree))
    seeded = {id(node.func) for node in nodes if isinstance(node, ast.Call) and (node.args or node.keywords)}
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            name, *path = _path(node)
            origin = ".".join(filter(None, (*imports[name], *path))) if name in imports else ""
            parts = origin.split(".")
            codes = (_CODES.get(".".join(parts[:end])) for end in range(1, len(parts) + 1))
            code = next(filter(None, codes), None)
            if code is not None and not (origin in _SEEDED and id(node) in seeded):
                yield node.lineno, code, origin


def _path(node: ast.expr) -> list[str]:
    """Return the name with which an expression begins, then its attributes and subscripts; ``[""]`` if there is no name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        parts.insert(0, node.attr if isinstance(node, ast.Attribute) else _PART)
        node = node.value
    return [node.id, *parts] if isinstance(node, ast.Name) else [""]


class _Body:
    """The names that a function binds. For a method of a processor, also the fields that the class and its `init` set."""

    def __init__(self, function: ast.AST, fields: frozenset[str] = frozenset()) -> None:
        nodes = list(_own_nodes(function))
        arguments = [node.arg for node in nodes if isinstance(node, ast.arg)]
        self.me, self.fields = next(iter(arguments), ""), fields
        outer = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
        stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        defined = {node.name for node in nodes if isinstance(node, _DEFINITIONS)}
        self.names = ({*arguments} | stored | defined) - outer
        self.builds = any(isinstance(node, ast.Name | ast.Attribute) and _path(node)[-1] in _BUILDS for node in nodes)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without the nodes of the functions that are defined in it."""
    waiting = [*ast.iter_child_nodes(function)][::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _FUNCTIONS):
            waiting += [*ast.iter_child_nodes(node)][::-1]


def _shared_state(module: Module, source: Source) -> Iterator[tuple[int, str, str]]:
    """Yield line, finding code and text of each place where a function changes something that outlives its call."""
    for node, bodies in _in_functions(module.tree, ()):
        if isinstance(node, _FUNCTIONS):
            for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
                if _is_mutable(default):
                    yield default.lineno, STATE, f"a default that can change ({ast.unparse(default)[:40]})"
        elif isinstance(node, ast.Global):
            yield node.lineno, STATE, f"global {', '.join(node.names)}"
        elif isinstance(node, ast.Nonlocal):
            if any(body.builds for name in node.names if (body := _owner(name, bodies))):
                yield node.lineno, STATE, f"nonlocal {', '.join(node.names)}"
        elif isinstance(node, ast.expr) and bodies:
            path = _changed(node)
            if path and _is_shared(path, bodies, module, source):
                yield node.lineno, STATE, f"changes shared state ({ast.unparse(node)[:60]})"


def _in_functions(
    node: ast.AST, bodies: tuple[_Body, ...], fields: frozenset[str] = frozenset()
) -> Iterator[tuple[ast.AST, tuple[_Body, ...]]]:
    """Yield each node below ``node`` with the functions that contain it, outermost first.

    ``fields``: if ``node`` is a class, the fields of that class.
    """
    for child in ast.iter_child_nodes(node):
        yield child, bodies
        if isinstance(child, _FUNCTIONS):
            changes_fields = fields and getattr(child, "name", "") not in (*_BEGIN, *_END)
            yield from _in_functions(child, (*bodies, _Body(child, fields if changes_fields else frozenset())))
        else:
            yield from _in_functions(child, bodies, _fields(child) if isinstance(child, ast.ClassDef) else frozenset())


def _fields(processor: ast.ClassDef) -> frozenset[str]:
    """Return the fields that a processor's class and its `init` set, except stores.

    A change to such a field is lost after a landing, because each landing begins with a new processor.
    """
    names: list[str] = []
    if any(_path(base)[-1].endswith(_PROCESSORS) for base in processor.bases):
        for statement in processor.body:
            begins = isinstance(statement, ast.FunctionDef) and statement.name in _BEGIN
            me = [_Body(statement).me] if begins else []
            for node in ast.walk(statement) if begins else [statement]:
                if (
                    isinstance(node, ast.Assign | ast.AnnAssign)
                    and node.value is not None
                    and not _is_store(node.value)
                ):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    paths = [_path(part) for target in targets for part in getattr(target, "elts", [target])]
                    names += [path[-1] for path in paths if path[:-1] == me]
    return frozenset(names)


def _is_store(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _path(node.func)[-1] == "store"


def _is_mutable(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return _path(node.func)[-1] in _MUTABLE
    return isinstance(node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)


def _changed(node: ast.expr) -> list[str]:
    """Return the path of the value that an expression changes, followed by the changing method or "=".

    The path is empty if the expression changes nothing.
    """
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        return [*_path(node), "="]
    if isinstance(node, ast.Call):
        called = _path(node.func)
        if len(called) > 1 and called[-1] in _CHANGES:
            return called
        if called[-1] in _CHANGES_ARGUMENT and node.args:
            # setattr(A, "n", 1) assigns to an attribute of A, so its path is A, a part and "="
            return [*_path(node.args[0]), *([_PART, "="] if called[-1].endswith("attr") else [called[-1]])]
    return []


def _is_shared(path: list[str], bodies: tuple[_Body, ...], module: Module, source: Source) -> bool:
    """Return whether a changed value outlives the call.

    It does if its path begins with a module, a class, a field, or a variable of the function that builds the topology.
    Variables of that function outlive the calls of the functions defined in it.
    """
    name, *rest = path
    body = _owner(name, bodies)
    if body is not None:
        is_field = name == body.me and rest[0] in body.fields
        return is_field or (body.builds and body is not bodies[-1])
    reexports = set[Module]()
    while name not in module.bindings:
        if name not in module.imports or module in reexports:
            return False
        reexports.add(module)
        base, attribute = module.imports[name]
        rest = [attribute, *rest] if attribute else rest
        while len(rest) > 1 and source.module(f"{base}.{rest[0]}") is not None:
            base, rest = f"{base}.{rest[0]}", rest[1:]
        origin = source.module(base)
        if origin is None:
            return False  # what the names of a library stand for is unknown
        module, (name, *rest) = origin, rest
    # `name.add()` changes a value. But if `name` is a class or function, it is a plain call, and only a longer path is a
    # change.
    is_definition = all(isinstance(statement, _DEFINITIONS) for statement in module.bindings[name])
    return len(rest) > (1 if is_definition else 0)


def _owner(name: str, bodies: tuple[_Body, ...]) -> _Body | None:
    """Return the innermost function that binds a name; None if no function binds it."""
    return next((body for body in reversed(bodies) if name in body.names), None)
