"""Names in backticks in docstrings and comments exist, so that a renamed module or function leaves no old name behind."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

LIB = Path(__file__).resolve().parents[2] / "lib" / "rewindow"
REFERENCE = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)`(?!`)")
OF_OTHERS = frozenset(
    [
        "AwsConnectionWrapper",
        "CancelledError",
        "DeltaTable.to_pyarrow_table",
        "GoogleBaseHook",
        "WasbHook",
        "hypothesis",
        "withName",
    ]
)
"""Names of other libraries, which the code does not use itself."""


def texts_of(source: str) -> Iterator[str]:
    """Yield the comments, docstrings and other texts that stand alone."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def names_of(source: str) -> set[str]:
    """Return the names in a module: what it defines, imports and uses, and the words in its short texts."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        names |= {
            getattr(node, part, None) or "" for part in ("name", "id", "attr", "arg", "asname") if _is_text(node, part)
        }
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 40:
            names |= set(re.findall(r"\w+", node.value))
    return {part for name in names for part in name.split(".")}


def _is_text(node: ast.AST, part: str) -> bool:
    return isinstance(getattr(node, part, None), str)


def unknown(sources: dict[str, str]) -> list[str]:
    """Return the references of some modules, by path, whose parts are names of nothing in them."""
    known = {part for path in sources for part in path.removesuffix(".py").split("/")}
    known = known.union(*map(names_of, sources.values()))
    return [
        f"{path}: `{name}`"
        for path, source in sources.items()
        for text in texts_of(source)
        for name in REFERENCE.findall(text)
        if name not in OF_OTHERS and not known.issuperset(name.split("."))
    ]


def test_references_name_something_that_exists():
    sources = {path.relative_to(LIB).as_posix(): path.read_text(encoding="utf-8") for path in sorted(LIB.rglob("*.py"))}
    assert unknown(sources) == []


def test_a_reference_to_a_former_name_is_found():
    sources = {
        "streams/task.py": '"""See `streams.clocks` and `streams.timers`."""\n',
        "streams/clocks.py": "# `Task`\n",
    }
    assert unknown(sources) == ["streams/task.py: `streams.timers`", "streams/clocks.py: `Task`"]
