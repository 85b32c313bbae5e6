"""The modules that are compiled (ADR-114): the list in pyproject.toml, what was built, and what the sources say about it."""

from __future__ import annotations

import ast
import os
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from rewindow.app.own_code import is_compiled

ROOT = Path(__file__).resolve().parents[2]
LIB = ROOT / "lib" / "rewindow"
MODULES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["rewindow"]["compiled"]["modules"]


def _imported(name: str) -> str:
    return f"rewindow.{name.removesuffix('.py').replace('/', '.')}"


def test_the_list_is_sorted_and_names_pure_modules_that_exist():
    assert sorted(set(MODULES)) == MODULES
    assert [name for name in MODULES if not (LIB / name).is_file()] == []
    assert [name for name in MODULES if not name.startswith(("streams/", "dsl/"))] == []


@pytest.mark.parametrize("name", MODULES)
def test_the_whole_list_is_compiled_or_nothing_of_it(name):
    found = import_module(_imported(name)).__file__
    assert found.endswith(".py") is not is_compiled()


def test_nothing_else_is_compiled():
    for name in MODULES:
        import_module(_imported(name))
    loaded = {
        module.__file__
        for name, module in sys.modules.items()
        if name.startswith("rewindow.") and getattr(module, "__file__", None) is not None
    }
    assert len([file for file in loaded if not file.endswith(".py")]) in ({len(MODULES)} if is_compiled() else {0})


def test_the_tests_of_the_compiled_core_run_with_it():
    assert is_compiled() is (os.environ.get("REWINDOW_EXPECTS_COMPILED") == "1")


def test_the_compilers_package_is_for_types_only():
    """The core needs the standard library alone, so `mypy_extensions` is imported in one place, where only mypy looks."""
    users = [path for path in LIB.rglob("*.py") if "mypy_extensions" in path.read_text(encoding="utf-8")]
    assert users == [LIB / "streams" / "compilation.py"]
    for node in ast.parse(users[0].read_text(encoding="utf-8")).body:
        assert not isinstance(node, ast.ImportFrom) or node.module != "mypy_extensions"
