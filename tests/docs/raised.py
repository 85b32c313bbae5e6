"""The messages of the library as its source has them: code, wording, facts and, of an error, the exit code of its class."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Formatter

import rewindow
from rewindow import errors
from rewindow.engine.worker.worker_errors import MEANINGS, STATES

MESSAGES = tuple(kind.__name__ for kind in errors.Message.__subclasses__())
"""The classes of messages that are no errors."""
_PACKAGE = Path(rewindow.__file__).parent
_OWN_MODULE = _PACKAGE / "errors.py"
_BY_CAUSE = "failed_io"
"""The function whose errors have the exit code of what the operating system said: 71, 74 or 77."""


@dataclass(frozen=True, slots=True)
class Raised:
    """A call that makes an error, or a message of a command that does not fail, whose class is then ``kind``.

    ``code`` and ``wording`` are None unless they are literals.
    """

    where: str
    exit_codes: tuple[int, ...]
    code: str | None
    wording: str | None
    facts: frozenset[str]
    kind: str = ""

    @property
    def shown(self) -> frozenset[str]:
        """The facts that the wording shows."""
        return frozenset(name for _, name, _, _ in Formatter().parse(self.wording or "") if name)


@cache
def raised() -> tuple[Raised, ...]:
    """Return every call of the library that makes a `RewindowError` or a `Message`. Its source is parsed once."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(_PACKAGE.rglob("*.py"))}
    kinds = _kinds(trees)
    return (*(one for path, tree in trees.items() for one in _calls(path, tree, kinds)), *_after_spark())


def _after_spark() -> Iterator[Raised]:
    """Yield the errors that are recognised by what Spark says."""
    for kind, code, fix in dict.fromkeys((*(meaning[1:] for meaning in MEANINGS), *STATES.values())):
        wording = "{reason}: " + fix.replace("{", "{{").replace("}", "}}")
        yield Raised("engine/worker/worker_errors.py", (kind.exit_code,), code, wording, frozenset(["reason"]))


def _kinds(trees: dict[Path, ast.Module]) -> dict[str, tuple[int, ...]]:
    """Return the exit codes of each class of errors, and of the functions that choose one."""
    kinds = {
        name: (kind.exit_code,)
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.RewindowError)
    }
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name not in kinds:
                for base in node.bases:
                    if isinstance(base, ast.Name) and base.id in kinds:
                        kinds[node.name] = kinds[base.id]
    every = tuple(kind.exit_code for kind in (errors.LimitError, errors.StorageError, errors.AccessError))
    return {**kinds, _BY_CAUSE: every, "kind": (), **dict.fromkeys(MESSAGES, ())}


def _calls(path: Path, tree: ast.Module, kinds: dict[str, tuple[int, ...]]) -> Iterator[Raised]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds):
            continue
        texts = [_literal(part) for part in (node.args[1:] if node.func.id == _BY_CAUSE else node.args)]
        if not (texts and all(texts)) and (
            path == _OWN_MODULE or node.func.id == "kind"
        ):  # functions that are given a code
            continue
        code, wording = texts if len(texts) == 2 else (None, None)
        where = f"{path.relative_to(_PACKAGE)}:{node.lineno}"
        facts = frozenset(str(fact.arg) for fact in node.keywords)
        kind = node.func.id if node.func.id in MESSAGES else ""
        yield Raised(where, kinds[node.func.id], code, wording, facts, kind)


def _literal(part: ast.expr) -> str | None:
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else None
