"""Let a command load pandas only if the job's code does.

At its first `pyarrow.array`, pyarrow imports pandas to find out whether the argument is a Series. That takes a quarter of the
CPU time of a small run, although most jobs have no Series. So this import is refused. pyarrow then treats pandas as absent until
somebody asks it for pandas' version. The import of pandas by anybody else does that, so that a Series is an array of its values,
with null for NaN, as usual.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def load_pandas_on_demand() -> None:
    """Install the rule in this process, once. It has no effect if pyarrow or pandas is loaded already."""
    is_installed = any(isinstance(finder, _Afterwards) for finder in sys.meta_path)
    if not is_installed and "pyarrow" not in sys.modules and "pandas" not in sys.modules:
        sys.meta_path.insert(0, _Afterwards({"pyarrow": _without_pandas, "pandas": _with_pandas}))


class _Afterwards(MetaPathFinder):
    """Calls a function when a module has been imported."""

    def __init__(self, actions: Mapping[str, Callable[[], object]]) -> None:
        self._actions = dict(actions)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that other finders find, with a loader that calls the function."""
        del path, target
        action = self._actions.pop(fullname, None)
        spec = None if action is None else find_spec(fullname)
        if action is not None and spec is not None and spec.loader is not None:
            spec.loader = _ActingLoader(spec.loader, action)
        return spec


class _ActingLoader(Loader):
    def __init__(self, loader: Loader, action: Callable[[], object]) -> None:
        self._loader, self._action = loader, action

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._action()


class _Refused(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname == "pandas":
            raise ImportError(fullname)
        return None


def _without_pandas() -> None:
    import pyarrow as pa

    if "pandas" not in sys.modules and hasattr(pa.lib, "_pandas_api"):
        sys.meta_path.insert(0, refused := _Refused())
        pa.array([])
        sys.meta_path.remove(refused)


def _with_pandas() -> None:
    lib: Any = sys.modules.get("pyarrow.lib")
    # To answer, pyarrow imports pandas, which is loaded by now.
    getattr(getattr(lib, "_pandas_api", None), "version", None)
