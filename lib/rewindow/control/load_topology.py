"""Load the user's topology from ``module:function``, in this process or in a worker."""

from __future__ import annotations

import importlib
import re
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import iscoroutinefunction
from types import ModuleType

from rewindow.errors import ConfigError, RewindowError, missing_function
from rewindow.streams.error_context import line_of
from rewindow.streams.topology import Topology


@dataclass(frozen=True, slots=True)
class TopologyLoader:
    """Builds a job's topology from its reference. A picklable value, which is sent to workers."""

    job: str
    reference: str
    root: str
    """The project's folder, from which ``jobs`` is imported."""

    def __call__(self) -> Topology:
        """Return a new topology. Raises `ConfigError` (78) if it cannot be loaded or built."""
        module_name, _, function_name = self.reference.partition(":")
        build = getattr(self._module(module_name), function_name, None)
        if not callable(build):
            raise missing_function(module_name, function_name).surrounded(f"job {self.job!r}: ")
        if iscoroutinefunction(build):
            raise ConfigError(
                "topology-function-async",
                "job {job!r}: {topology} is `async`: write `def {function}` without it",
                job=self.job,
                topology=self.reference,
                function=function_name,
            )
        try:
            # Standard output is for the command's own, such as JSON.
            with redirect_stdout(sys.stderr):
                topology = build()
        except RewindowError as error:
            error.at_line(line_of(error))
            raise
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}{_instead(error)}"
            raise ConfigError(
                "topology-function-failed",
                "job {job!r}: {topology} failed with {reason}",
                job=self.job,
                topology=self.reference,
                reason=reason,
            ).at_line(line_of(error)) from error
        if not isinstance(topology, Topology):
            raise ConfigError(
                "topology-not-returned",
                "job {job!r}: {topology} returned an instance of {type}: return builder.build()",
                job=self.job,
                topology=self.reference,
                type=type(topology).__name__,
            )
        return topology

    def _module(self, name: str) -> ModuleType:
        if self.root not in sys.path:
            sys.path.insert(0, self.root)
        try:
            with redirect_stdout(sys.stderr):
                return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):
                raise ConfigError(
                    "topology-import-missing",
                    "job {job!r}: cannot import {module!r}: {reason}. Fix the import, or install the module",
                    job=self.job,
                    module=name,
                    reason=str(error),
                ).at_line(line_of(error)) from error
            fix = "Write the module without .py" if name.endswith(".py") else "Fix `topology:` or the import"
            raise ConfigError(
                "topology-module-missing",
                "job {job!r}: cannot import {module!r} from {project}: {reason}. {fix}",
                job=self.job,
                module=name,
                project=self.root,
                reason=str(error),
                fix=fix,
            ) from error
        except SyntaxError as error:
            raise ConfigError(
                "topology-syntax-invalid",
                "job {job!r}: {file}:{line}: {reason}. Fix that line",
                job=self.job,
                file=error.filename,
                line=error.lineno,
                reason=error.msg,
            ) from error
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}"
            raise ConfigError(
                "topology-import-failed",
                "job {job!r}: importing {module!r} failed with {reason}. Fix the module: workers import it too",
                job=self.job,
                module=name,
                reason=reason,
            ).at_line(line_of(error)) from error


def _instead(error: BaseException) -> str:
    """Return the verb to use instead of one that an object does not have, as ``group_by_key`` for ``groupByKey``."""
    if not isinstance(error, AttributeError) or not error.name:
        return ""
    verbs = [name for name in dir(error.obj) if not name.startswith("_")]
    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", error.name).lower()
    near = get_close_matches(snake, verbs, 1)
    if near:
        return f": write {near[0]}"
    return ": call to_stream() before it" if "to_stream" in verbs else ""
