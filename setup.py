"""The build. ``REWINDOW_COMPILED=1`` compiles the modules that pyproject.toml lists with mypyc; otherwise all stay Python.

Everything else about the package is in pyproject.toml.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setuptools import setup

ROOT = Path(__file__).parent
COMPILING = {"build", "build_ext", "bdist_wheel", "install"}
"""The commands of setuptools that compile. The others ask for metadata or for what the build needs."""

# The types that rewindow exports for users come from everywhere, also from packages that the core does not know.
CONFIG = """
[mypy]
python_version = 3.11
mypy_path = lib
[mypy-rewindow.app.*]
follow_imports = skip
"""


def compilation() -> dict[str, Any]:
    """Return the arguments of `setup` that compile; none without ``REWINDOW_COMPILED``."""
    wanted = os.environ.get("REWINDOW_COMPILED", "0")
    if wanted not in {"0", "1"}:
        raise SystemExit(f"REWINDOW_COMPILED={wanted}: 1 compiles rewindow's core, 0 (the default) leaves it in Python")
    if wanted == "0":
        return {}
    compiled = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["rewindow"]["compiled"]
    if not COMPILING & set(sys.argv):
        return {"setup_requires": [compiled["compiler"]]}
    from mypyc.build import mypycify  # noqa: PLC0415 - only the compiler needs it

    sources = [str(Path("lib", "rewindow", module)) for module in compiled["modules"]]
    with TemporaryDirectory() as folder:
        config = Path(folder, "mypy.ini")
        config.write_text(CONFIG, encoding="utf-8")
        modules = mypycify(
            ["--config-file", str(config), *sources], opt_level="3", debug_level="0", group_name="rewindow"
        )
    return {"ext_modules": modules}


setup(**compilation())
