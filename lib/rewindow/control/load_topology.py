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

from rewindow.errors import ConfigError, RewindowError
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
            raise ConfigError(
                "CODE",
                "job {job!r}: {module_name} has no function {function_name!r}: fix `topology:` or the module",
                job=self.job,
                module_name=module_name,
                function_name=function_name,
            )
        if iscoroutinefunction(build):
            raise ConfigError(
                "CODE",
                "job {job!r}: {reference} is `async`: write `def {function_name}` without it",
                job=self.job,
                reference=self.reference,
                function_name=function_name,
            )
        try:
            with redirect_stdout(sys.stderr):  # standard output is for the command's own, such as JSON
                topology = build()
        except RewindowError as error:
            error.at_line(line_of(error))
            raise
        except (Exception, SystemExit) as error:
            what = f"{type(error).__name__}: {error}{_instead(error)}"
            raise ConfigError(
                "CODE", "job {job!r}: {reference} failed with {what}", job=self.job, reference=self.reference, what=what
            ).at_line(line_of(error)) from error
        if not isinstance(topology, Topology):
            raise ConfigError(
                "CODE",
                "job {job!r}: {reference} returned a {__name__}: return builder.build()",
                job=self.job,
                reference=self.reference,
                __name__=type(topology).__name__,
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
                    "CODE",
                    "job {job!r}: cannot import {name!r}: {error}. Fix the import, or install the module",
                    job=self.job,
                    name=name,
                    error=error,
                ).at_line(line_of(error)) from error
            fix = "Write the module without .py" if name.endswith(".py") else "Fix `topology:` or the import"
            raise ConfigError(
                "CODE",
                "job {job!r}: cannot import {name!r} from {root}: {error}. {fix}",
                job=self.job,
                name=name,
                root=self.root,
                error=error,
                fix=fix,
            ) from error
        except SyntaxError as error:
            raise ConfigError(
                "CODE",
                "job {job!r}: {filename}:{lineno}: {msg}. Fix that line",
                job=self.job,
                filename=error.filename,
                lineno=error.lineno,
                msg=error.msg,
            ) from error
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}"
            raise ConfigError(
                "CODE",
                "job {job!r}: importing {name!r} failed with {reason}. Fix the module: workers import it too",
                job=self.job,
                name=name,
                reason=reason,
            ).at_line(line_of(error)) from error


def _instead(error: BaseException) -> str:
    """Return the verb that was meant where code calls one that an object does not have, as in ``groupByKey``."""
    if not isinstance(error, AttributeError) or not error.name:
        return ""
    verbs = [name for name in dir(error.obj) if not name.startswith("_")]
    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", error.name).lower()
    near = get_close_matches(snake, verbs, 1)
    if near:
        return f": write {near[0]}"
    return ": call to_stream() before it" if "to_stream" in verbs else ""
