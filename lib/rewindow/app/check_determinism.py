"""What in user code would make a replay another one: clocks, dice, the machine, the order of sets. Found without running it.

It reads the syntax and knows no types, so it finds what is written plainly; `rewindow verify` finds the rest.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rewindow.errors import ConfigError

ALLOW: Final = "# rewindow: allow"
"""A comment that accepts its line."""

_CLOCK = "take the record's timestamp, context.stream_time_ms or context.wall_clock_ms"
_DIE = "take context.random()"
_ID = "take context.uuid(), or context.idempotency_key()"
_MACHINE = "pass what it says as data: a constant in the topology, a column of a log"
_ADDRESS = "it is another in each process: use the key, or rewindow's own context.uuid()"
_ORDER = "a set has another order in each process: sort it, or keep a dict or a list"

# The beginning of a name, as it is called where it comes from -> what to take instead.
_BANNED: Final = {
    **dict.fromkeys(
        (
            *(f"time.{name}" for name in ("time", "time_ns", "monotonic", "perf_counter", "process_time", "localtime")),
            *("time.monotonic_ns", "time.perf_counter_ns", "time.gmtime", "time.ctime", "time.asctime", "time.tzname"),
            *(f"datetime.{name}" for name in ("datetime.now", "datetime.utcnow", "datetime.today", "date.today")),
            *("pendulum.now", "pendulum.today", "pendulum.yesterday", "pendulum.tomorrow", "pandas.Timestamp.now"),
        ),
        _CLOCK,
    ),
    **dict.fromkeys(("random", "secrets", "numpy.random", "os.urandom"), _DIE),
    **dict.fromkeys(("uuid.uuid1", "uuid.uuid4", "uuid.uuid6", "uuid.uuid7", "uuid.getnode"), _ID),
    **dict.fromkeys(
        (
            *("os.environ", "os.environb", "os.getenv", "os.getcwd", "os.getpid", "os.listdir", "os.scandir"),
            *("os.walk", "os.cpu_count", "os.uname", "socket.gethostname", "platform", "locale", "glob.glob"),
            *("getpass.getuser", "sys.argv"),
        ),
        _MACHINE,
    ),
    **dict.fromkeys(("id", "hash", "object.__hash__"), _ADDRESS),
}
_SEEDED: Final = ("random.Random", "numpy.random.default_rng")
"""Fine when they are called with a seed."""

_MAKES_LISTS: Final = (
    "list",
    "tuple",
    "iter",
    "enumerate",
    "zip",
    "map",
    "filter",
    "next",
    "reversed",
    "deque",
    "chain",
)
_KEEPS_ORDER: Final = frozenset((*_MAKES_LISTS, "join", "fromkeys", "extend", "str", "repr", "dumps"))
_MAKES_SETS: Final = frozenset(["union", "intersection", "difference", "symmetric_difference", "copy"])


@dataclass(frozen=True, slots=True)
class Finding:
    """A place in the code: file (relative to the project), line, what stands there and what to use instead."""

    file: str
    line: int
    what: str
    instead: str

    def __str__(self) -> str:
        """Say it to a person."""
        return f"{self.file}:{self.line}: {self.what}: {self.instead}"


def check_files(root: Path, files: list[Path]) -> list[Finding]:
    """Return what is found in files and in the project's modules that they import, by file and line.

    Raises `ConfigError` (78) for a file that cannot be read or parsed.
    """
    found: list[Finding] = []
    seen: dict[Path, None] = {}
    waiting = [file.resolve() for file in files]
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen[file] = None
        tree, lines = _parsed(file)
        shown = str(file.relative_to(root)) if file.is_relative_to(root) else str(file)
        found += [one for one in _findings(shown, tree) if ALLOW not in lines[one.line - 1]]
        waiting += _imported(root, file, tree)
    return sorted(dict.fromkeys(found), key=lambda one: (one.file, one.line, one.what))


def module_file(root: Path, module: str) -> Path | None:
    """Return the file of a module of the project, or None if it is none."""
    place = root.joinpath(*module.split("."))
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if file.is_file():
            return file
    return None


def _parsed(file: Path) -> tuple[ast.Module, list[str]]:
    try:
        text = file.read_text()
        return ast.parse(text), text.splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {file}: {error}. Name a job, or a file of Python code") from error
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{file}:{getattr(error, 'lineno', 1)}: {error}. Fix that line") from error


def _imported(root: Path, file: Path, tree: ast.Module) -> Iterator[Path]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level and file.is_relative_to(root):
                package = file.relative_to(root).parent.parts
                base = ".".join((*package[: len(package) + 1 - node.level], *([base] if base else [])))
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)] if base else []
        for name in names:
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                found = module_file(root, ".".join(parts[:end]))
                if found is not None:
                    yield found.resolve()


def _findings(shown: str, tree: ast.Module) -> Iterator[Finding]:
    origins = _origins(tree)
    seeded = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and (node.args or node.keywords)}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    sets = _names_of_sets(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            name = _dotted(node, origins)
            if name in _SEEDED and id(node) in seeded:
                continue
            instead = _instead(name)
            if instead is not None:
                yield Finding(shown, node.lineno, name, instead)
        for walked in _walked(node):
            if _is_set(walked, sets):
                text = ast.unparse(walked)
                yield Finding(shown, walked.lineno, f"goes through a set ({text[:40]})", _ORDER)


def _origins(tree: ast.Module) -> dict[str, str]:
    """Return what each imported name stands for; a builtin that the module defines anew stands for nothing."""
    origins = {"id": "id", "hash": "hash", "object": "object"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.split(".")[0]
                origins[bound] = alias.name if alias.asname else bound
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                origins[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            origins.pop(node.name, None)
        elif isinstance(node, ast.arg):
            origins.pop(node.arg, None)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            origins.pop(node.id, None)
    return origins


def _dotted(node: ast.expr, origins: dict[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in origins:
        return ""
    return ".".join((origins[node.id], *reversed(parts)))


def _instead(name: str) -> str | None:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        found = _BANNED.get(".".join(parts[:end]))
        if found is not None:
            return found
    return None


def _walked(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions whose order a node depends on."""
    if isinstance(node, ast.For | ast.comprehension):
        yield node.iter
    elif isinstance(node, ast.YieldFrom | ast.Starred | ast.FormattedValue):
        yield node.value
    elif isinstance(node, ast.Call):
        called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if called in _KEEPS_ORDER:
            yield from node.args
        elif called == "pop" and not node.args and isinstance(node.func, ast.Attribute):
            yield node.func.value


def _is_set(node: ast.expr, sets: frozenset[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id in {"set", "frozenset"}
        return isinstance(node.func, ast.Attribute) and node.func.attr in _MAKES_SETS and _is_set(node.func.value, sets)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.Sub | ast.BitXor):
        return any(_is_set(side, sets) or _is_keys(side) for side in (node.left, node.right))
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in sets


def _is_keys(node: ast.expr) -> bool:
    """Return whether it is ``x.keys()``: two of them together are a set."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys"


def _names_of_sets(tree: ast.AST) -> frozenset[str]:
    """Return the names that a module binds to a set and to nothing else, by value or by annotation."""
    bound: dict[str, bool] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                name = ast.unparse(target)
                bound[name] = bound.get(name, True) and _is_set(node.value, frozenset())
        elif isinstance(node, ast.AnnAssign):
            bound[ast.unparse(node.target)] = _annotates_set(node.annotation)
        elif isinstance(node, ast.arg) and node.annotation is not None:
            bound[node.arg] = bound.get(node.arg, True) and _annotates_set(node.annotation)
    return frozenset(name for name, is_set in bound.items() if is_set)


def _annotates_set(annotation: ast.expr) -> bool:
    named = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return ast.unparse(named).split(".")[-1] in {"set", "frozenset", "Set", "AbstractSet", "MutableSet"}
