"""What a task says when something fails in it: which node, at which record, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rewindow.core.scope import TaskScope
from rewindow.errors import ConfigError, DataError, RewindowError


@contextmanager
def explained(scope: TaskScope) -> Iterator[None]:
    """Say at which record and node it was that something failed: user code's errors become a `DataError`."""
    try:
        yield
    except (DataError, ConfigError) as error:
        raise type(error)(f"{error} [at {scope.moment}, partition {scope.partition}]") from error
    except RewindowError:
        raise
    except Exception as error:
        raise _explain(error, scope) from error


def _explain(error: Exception, scope: TaskScope) -> DataError:
    names = {id(processor): name for name, processor in scope.processors.items()}
    node, line, trace = "", 0, error.__traceback__
    while trace is not None:
        node = names.get(id(trace.tb_frame.f_locals.get("self")), node)
        line, trace = trace.tb_lineno, trace.tb_next
    where = f"{scope.moment}, partition {scope.partition}"
    what = f"{type(error).__name__}: {error} (line {line})" if line else str(error)
    return DataError(f"node {node!r} failed at {where}: {what}. Nothing was committed: mend the code and run again")
