"""Find code whose result depends on the clock, randomness, the machine, set order or state outside stores. Runs nothing.

The check reads syntax and knows no types, so it finds only direct uses; `rewindow verify` finds the rest.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rewindow.app.processor_fields import changed_fields
from rewindow.app.set_iteration import iterated_sets
from rewindow.app.shared_state import mutable_defaults, shared_state
from rewindow.control.project_source import Module, Source, imported_module, module_file

ALLOW: Final = "# rewindow: allow"
"""A comment that accepts the findings of its line."""

_CLOCK = "use the record's timestamp, context.stream_time_ms or context.wall_clock_ms"
_RANDOM = "use context.random()"
_ID = "use context.uuid() or context.idempotency_key()"
_MACHINE = "pass it as data: a constant in the topology, or a column of a log"
_ADDRESS = "its value differs between processes: use the key, or context.uuid()"
_STATE = "no checkpoint sees it and workers do not share it: keep it in a store, context.store(name)"
_FIELD = "each landing begins with a new processor, which knows nothing of it: keep it in a store, context.store(name)"
_DEFAULT = "all calls share it: use None, and make it in the body"
_CACHE = "it remembers earlier records: drop it, or accept the line if the result depends on the arguments alone"
_ORDER = "set order differs between processes: sort it, or use a dict or a list"

# Qualified name, or a prefix of one -> what to use instead.
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
    **dict.fromkeys(("random", "secrets", "numpy.random", "os.urandom"), _RANDOM),
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
_CACHES: Final = ("functools.lru_cache", "functools.cache")
_SEEDED: Final = ("random.Random", "numpy.random.default_rng")
"""Deterministic when they are called with a seed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A non-deterministic expression: its file (relative to the project), line, text, and what to use instead."""

    file: str
    line: int
    what: str
    instead: str

    def __str__(self) -> str:
        """Return ``file:line: what: instead``."""
        return f"{self.file}:{self.line}: {self.what}: {self.instead}"


def check_files(root: Path, files: list[Path]) -> list[Finding]:
    """Check files and the project's modules that they import. Return the findings by file and line.

    Raises `ConfigError` (78) for a file that cannot be read or parsed.
    """
    found: list[Finding] = []
    root = root.resolve()
    source = Source(root)
    seen: dict[Path, None] = {}
    queue = [file.resolve() for file in files]
    while queue:
        file = queue.pop()
        if file in seen:
            continue
        seen[file] = None
        shown = str(file.relative_to(root)) if file.is_relative_to(root) else str(file)
        module = Module(_module_name(root, file), file, shown)
        lines = file.read_text(encoding="utf-8").splitlines()
        here = [*findings(shown, module.tree), *_state_findings(module, source)]
        found += [finding for finding in here if ALLOW not in lines[finding.line - 1]]
        queue += _imports(root, file, module.tree)
    return sorted(dict.fromkeys(found), key=lambda finding: (finding.file, finding.line, finding.what))


def _module_name(root: Path, file: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts if file.is_relative_to(root) else (file.stem,)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(root: Path, file: Path, tree: ast.Module) -> Iterator[Path]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = file.relative_to(root).parent.parts if file.is_relative_to(root) else ()
            base = imported_module(node, package)
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)] if base else []
        for name in names:
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                found = module_file(root, ".".join(parts[:end]))
                if found is not None:
                    yield found.resolve()


def _state_findings(module: Module, source: Source) -> Iterator[Finding]:
    """Yield where a module's code keeps state outside stores."""
    origins = _origins(module.tree)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name | ast.Attribute) and (name := _dotted(node, origins)) in _CACHES:
            yield Finding(module.shown, node.lineno, name, _CACHE)
    for line, what in shared_state(module, source):
        yield Finding(module.shown, line, what, _STATE)
    for line, what in changed_fields(module.tree):
        yield Finding(module.shown, line, f"changes {what}", _FIELD)
    for default in mutable_defaults(module.tree):
        yield Finding(
            module.shown, default.lineno, f"a default that can change ({ast.unparse(default)[:40]})", _DEFAULT
        )


def findings(file: str, tree: ast.Module) -> Iterator[Finding]:
    """Yield what depends on the clock, randomness, the machine or set order; ``file`` is the name that is shown."""
    origins = _origins(tree)
    seeded = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and (node.args or node.keywords)}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            name = _dotted(node, origins)
            if name in _SEEDED and id(node) in seeded:
                continue
            instead = _instead(name)
            if instead is not None:
                yield Finding(file, node.lineno, name, instead)
    for iterated in iterated_sets(tree):
        yield Finding(file, iterated.lineno, f"iterates over a set ({ast.unparse(iterated)[:40]})", _ORDER)


def _origins(tree: ast.Module) -> dict[str, str]:
    """Return the qualified name behind each imported name and checked builtin, without builtins that are redefined."""
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
