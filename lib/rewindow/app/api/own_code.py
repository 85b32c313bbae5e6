"""Import a project's code as it is on disk now, in a process that lives longer than one command.

A command line starts with no module of the project. A notebook does not: it would run the code that it imported before an edit,
or the `jobs` of another project.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from rewindow.testing.fresh_modules import is_of_project, without_modules


@contextmanager
def own_code(root: Path) -> Iterator[None]:
    """Let imports find the modules of a project first, as they are now; afterwards, what was imported before is known again.

    No bytecode is written: two edits within a second look the same to it.
    """
    provided = _provided_by(root)

    def is_hidden(name: str, module: ModuleType) -> bool:
        is_hiding = name.partition(".")[0] in provided and "site-packages" not in (
            getattr(module, "__file__", None) or ""
        )
        return is_hiding or is_of_project(root, name, module)

    path, writes_none = list(sys.path), sys.dont_write_bytecode
    sys.path[:] = [str(root), *(one for one in path if one != str(root))]
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        with without_modules(is_hidden):
            yield
    finally:
        sys.path[:], sys.dont_write_bytecode = path, writes_none


def _provided_by(root: Path) -> set[str]:
    """Return the names of the modules and packages directly below a folder, without those of the standard library."""
    modules = {file.stem for file in root.glob("*.py")}
    packages = {folder.name for folder in root.iterdir() if folder.is_dir() and any(folder.glob("*.py"))}
    return (modules | packages) - {"rewindow", "__main__"} - sys.stdlib_module_names
