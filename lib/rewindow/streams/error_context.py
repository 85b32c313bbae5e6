"""Errors of a task. Each message names the node that failed, the record that was being processed, and the fix."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from types import FrameType, MethodType

from rewindow.errors import ConfigError, DataError, EmissionError, LimitError, RewindowError, without_secrets
from rewindow.streams.task_context import TaskContext, record_text

_OURS = "rewindow."
"""The prefix of the names of this library's modules."""
_PYTHONS = json.__file__.rpartition("json")[0]
"""The folder of the standard library."""
_LONGEST_REASON, _LONGEST_RECORD, _LONGEST_MESSAGE = 200, 500, 2_000
_LOOP_MODULES, _LOOP = (f"{_OURS}streams.task", f"{_OURS}streams.topic_replay"), "_replay"
"""The functions that loop over input records. They have the local variables ``record``, or ``key`` and ``value``."""
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")
_SECRET = re.compile(r"(?i)(passw(?:or)?d|secret|token|api[_-]?key|authorization)(['\"]?\s*[=:]\s*)[^\s,;@]+")
_WRONG_CALL = re.compile(
    r"(?:\w+Context|Forwarding)\.(forward|schedule)\(\) (?:takes|missing|got) "
    # Messages of compiled code (`streams.forwarding`) do not contain the name of the class.
    r"|(?:'\w+' is an invalid keyword argument for )?(forward)\(\)(?: takes (?:exactly|at most) | missing required |$)"
)
_SIGNATURES = {
    "forward": "forward takes one Record: write forward(Record(key, value), to=To.child(name))",
    "schedule": "schedule takes an interval, a PunctuationType and a callback: give all three",
}


@contextmanager
def explained(task_context: TaskContext) -> Iterator[None]:
    """Add the node and the record to errors raised in the ``with`` block. Errors of user code become a `DataError`."""
    try:
        yield
    except EmissionError:
        raise
    except (DataError, ConfigError) as error:
        node = _node(error, task_context)
        position = f"at {task_context.record_context}, partition {task_context.partition}" + (
            f", node {node!r}" if node else ""
        )
        error.surrounded(after=f" [{position}]{_record(error, task_context)}")
        raise
    except RewindowError:
        raise
    except MemoryError as error:
        raise LimitError(
            "node-out-of-memory",
            "node {node!r} ran out of memory at {position}, partition {partition}{line}. {hint}fix the code that "
            "takes so much",
            node=_node(error, task_context),
            position=str(task_context.record_context),
            partition=task_context.partition,
            line=where(error),
            hint="" if task_context.is_test else "Nothing was committed: run with more memory or fewer cores, or ",
        ) from error
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # this includes `SystemExit` and asyncio's `CancelledError`
        raise _explain(error, task_context) from error


def _explain(error: BaseException, task_context: TaskContext) -> DataError:
    node = _node(error, task_context)
    is_of_record, has_policy = task_context.record_context.topic is not None, node in task_context.nodes_with_policy
    note = " (on_error is for records, not for this)" if has_policy and not is_of_record else ""
    is_unprotected = is_of_record and bool(node) and not has_policy
    return DataError(
        "node-failed",
        "node {node!r} failed at {position}, partition {partition}: {error}{hint}. {fix}.{record}",
        node=node,
        position=str(task_context.record_context),
        partition=task_context.partition,
        error=f"{type(error).__name__}: {_clipped(_message(error), _LONGEST_MESSAGE)}{where(error)}",
        hint=note + _signature(error),
        fix=_advice(node if is_unprotected else "", is_test=task_context.is_test),
        record=_record(error, task_context),
    )


def _advice(unprotected: str, *, is_test: bool) -> str:
    """Return the advice for code that fails. ``unprotected`` is the node that could get an error policy; empty if none.

    A test has no commit, no job's file and no command to run again, so its advice mentions none of them.
    """
    if is_test:
        return "Fix the code, or the record that the test gives it"
    aside = f", or set `on_error: {{{unprotected}: quarantine}}` to put such records aside" if unprotected else ""
    return f"Nothing was committed: fix the code and run again, with `--accept-changes` if earlier runs had it{aside}"


def _record(error: BaseException, task_context: TaskContext) -> str:
    """Return a sentence with key and value of the input record that was being processed; empty if there was no record."""
    context = task_context.record_context
    for frame, _ in walk_tb(error.__traceback__):
        is_loop = frame.f_code.co_name == _LOOP and frame.f_globals.get("__name__") in _LOOP_MODULES
        if is_loop and context.topic:
            local_names = frame.f_locals
            key, value, *_ = local_names.get("record") or (local_names.get("key"), local_names.get("value"))
            if local_names.get("offset") == context.offset:
                text = _masked(record_text(key, value))
                return f" The record: {_clipped(text, _LONGEST_RECORD)}"
    return ""


def _masked(text: str) -> str:
    return without_secrets(_SECRET.sub(r"\1\2***", text))


def _signature(error: BaseException) -> str:
    """Return how to call ``forward`` or ``schedule``, if the error is a wrong call of these; otherwise an empty text."""
    match = _WRONG_CALL.match(_message(error)) if isinstance(error, TypeError) else None
    if match is None:
        return ""
    return f". {_SIGNATURES[match[1] or match[2]]}, or derive the class from LegacyProcessor to keep Kafka's old signatures"


def _node(error: BaseException, task_context: TaskContext) -> str:
    """Return the name of the innermost node whose code was running; empty if no node was running."""
    names = {id(processor): name for name, processor in task_context.schedules.processors.items()}
    node = ""
    for frame, _ in walk_tb(error.__traceback__):
        code = frame.f_code
        self = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        node = names.get(id(self), node)
    # If a method was called with the wrong arguments, it has no frame.
    if not node:
        node = next((names[id(method.__self__)] for method in _called(error) if id(method.__self__) in names), "")
    return node


def _called(error: BaseException) -> list[MethodType]:
    """Return the methods in the local variables of the deepest frame. The method that this frame called is one of them."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    return [value for value in frames[-1].f_locals.values() if isinstance(value, MethodType)] if frames else []


def reason_of(error: Exception) -> str:
    """Return an error's class, message and a digest of its stack. The same failure at the same record gives the same text."""
    message = _masked(_ADDRESS.sub("0x...", " ".join(_message(error).split())))
    stack = "\n".join(
        f"{frame.f_globals.get('__name__')}:{frame.f_code.co_name}:{line}"
        for frame, line in walk_tb(error.__traceback__)
        if not _is_ours(frame)
    )
    digest = hashlib.sha256(stack.encode()).hexdigest()[:12]
    return f"{type(error).__name__}: {_clipped(message, _LONGEST_REASON)} [stack {digest}]"


def _message(error: BaseException) -> str:
    """Return the error's message."""
    # The error's `__str__` is user code too, and may fail.
    try:
        return str(error)
    except Exception as second:  # noqa: BLE001 - the first error is the one to report
        return f"(its message failed with {type(second).__name__})"


def _clipped(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]} ..."


def where(error: BaseException) -> str:
    """Return `line_of` an error as `` (file:line)``; empty if there is no such line."""
    line = line_of(error)
    return f" ({line})" if line else ""


def line_of(error: BaseException) -> str | None:
    """Return ``file:line`` of the deepest frame outside rewindow; None if there is none.

    A frame of the user's code is preferred to frames of the standard library and of installed packages.
    """
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__) if not _is_ours(frame)]
    own = [(file, line) for file, line in frames if not file.startswith(_PYTHONS) and "site-packages" not in file]
    frames = own or frames
    if frames:
        file, line = frames[-1]
        return f"{file}:{line}"
    function = next((method.__func__ for method in _called(error) if hasattr(method.__func__, "__code__")), None)
    if function is None or function.__module__.startswith(_OURS):
        return None
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(_OURS)
