"""Convert Python values to Arrow without pandas, which pyarrow loads for its first conversion: a third of a short command.

pyarrow looks for pandas once, to know its data frames and series when it gets one. A command makes none: only the project's code
could, and only with a library that it imports.
"""

from __future__ import annotations

import ast
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path

import pyarrow as pa

from rewindow.control.project_source import module_file

_WITHOUT = sys.stdlib_module_names - {"importlib"} | {"numpy", "pyarrow", "rewindow"}
"""Modules that never load pandas for the code that imports them. `importlib` might load anything."""


def convert_without_pandas() -> None:
    """Let this process convert values without pandas, unless it has loaded pandas already. Explicit uses still load it."""
    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas())
    try:
        pa.array([0])  # pyarrow looks for it now, and not again
    finally:
        sys.meta_path.pop(0)


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError


def know_pandas_again(root: Path) -> None:
    """Let pyarrow know pandas' objects if the code that was imported from a project, or a library of it, may make some."""
    if any(_may_load_pandas(Path(file), root) for file in _imported_from(root)):
        pa.array([0]).to_pandas()


def _imported_from(root: Path) -> list[str]:
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return [file for file in files if file and Path(file).is_relative_to(root) and file.endswith(".py")]


def _may_load_pandas(file: Path, root: Path) -> bool:
    names = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module or "")
    return any(name.partition(".")[0] not in _WITHOUT and module_file(root, name) is None for name in names)
