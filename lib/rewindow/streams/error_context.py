"""What a task says when something fails in it: which node, at which record, and what to do."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import extract_tb, walk_tb

from rewindow.errors import ConfigError, DataError, EmissionError, LimitError, RewindowError
from rewindow.streams.task_context import TaskContext


@contextmanager
def explained(task_context: TaskContext) -> Iterator[None]:
    """Say at which record and node it was that something failed: user code's errors become a `DataError`."""
    try:
        yield
    except EmissionError:
        raise
    except (DataError, ConfigError) as error:
        node = _node(error, task_context)
        at = f"at {task_context.record_context}, partition {task_context.partition}" + (
            f", node {node!r}" if node else ""
        )
        raise type(error)(f"{error} [{at}]") from error
    except RewindowError:
        raise
    except MemoryError as error:
        raise LimitError(
            f"node {_node(error, task_context)!r} ran out of memory at {task_context.record_context}, "
            f"partition {task_context.partition}{where(error)}. "
            "Nothing was committed: run with more memory or fewer cores, or fix the code that takes so much"
        ) from error
    except (Exception, SystemExit) as error:
        raise _explain(error, task_context) from error


def _explain(error: BaseException, task_context: TaskContext) -> DataError:
    node = _node(error, task_context)
    at = f"{task_context.record_context}, partition {task_context.partition}"
    what = f"{type(error).__name__}: {_clipped(_words(error), _LONGEST_SAID)}{where(error)}"
    forgiven = (
        " (on_error is for records, not for this)"
        if task_context.record_context.topic is None and node in task_context.forgiving
        else ""
    )
    return DataError(
        f"node {node!r} failed at {at}: {what}{forgiven}. Nothing was committed: fix the code and run again"
    )


def _node(error: BaseException, task_context: TaskContext) -> str:
    """Return the node whose code it was in the end; nothing if it was none's."""
    names = {id(processor): name for name, processor in task_context.processors.items()}
    node = ""
    for frame, _ in walk_tb(error.__traceback__):
        code = frame.f_code
        self = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        node = names.get(id(self), node)
    return node


def reason_of(error: Exception) -> str:
    """Return class, words and a digest of the stack: the same wherever the same code fails at the same record."""
    words = _SECRET.sub(r"\1\2***", _ADDRESS.sub("0x...", " ".join(_words(error).split())))
    stack = "\n".join(
        f"{frame.f_globals.get('__name__')}:{frame.f_code.co_name}:{line}"
        for frame, line in walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith(_OURS)
    )
    return (
        f"{type(error).__name__}: {_clipped(words, _LONGEST)} [stack {hashlib.sha256(stack.encode()).hexdigest()[:12]}]"
    )


def _words(error: BaseException) -> str:
    """Return what an error says; the code that says it is the user's too, and may fail."""
    try:
        return str(error)
    except Exception as second:  # noqa: BLE001 - whatever it is, the first error is what counts
        return f"(its own words failed with {type(second).__name__})"


def _clipped(words: str, longest: int) -> str:
    return words if len(words) <= longest else f"{words[:longest]} ..."


def where(error: BaseException) -> str:
    """Return `` (file:line)`` of the deepest frame outside rewindow, the user's own; nothing if there is none."""
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith(_OURS)]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


_OURS = __file__.rpartition("streams")[0]
_LONGEST, _LONGEST_SAID = 200, 2_000
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")
_SECRET = re.compile(
    r"(?i)(passw(?:or)?d|secret|token|api[_-]?key|authorization|://[^/\s:@]+)(['\"]?\s*[=:]\s*)[^\s,;@]+"
)
