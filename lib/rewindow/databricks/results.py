"""Find the JSON output of a wheel task's commands in the task's logs, of which Databricks keeps the last 5 MB.

The logs contain everything written to stdout or stderr. The result is the last line with a JSON object like those that
`rewindow run --json` prints, or with the error of a failed command.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_OBJECT: Final = re.compile(r'\{"')
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Printed:
    """The results of a job run's tasks by task key, and the reasons why others have none."""

    results: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def result_in(logs: str) -> dict[str, Any] | None:
    """Return the JSON that `run` printed, or None."""
    return _last(logs, '"published"', lambda found: isinstance(found.get("published"), list) and "run" in found)


def error_in(logs: str, code: int) -> str | None:
    """Return the message of the command that failed with this exit code, or None."""
    found = _last(logs, '"exit_code"', lambda found: found.get("exit_code") == code and "error" in found)
    return None if found is None else str(found["error"])


def why_missing(logs: str | None, *, is_truncated: bool) -> str:
    """Return why there is no result in a task's logs."""
    if not logs:
        return "Databricks has no logs of the task"
    if is_truncated:
        return "Databricks keeps the last 5 MB of a task's logs, and the result is not in them"
    return "the task's logs contain no result: check that the deployed wheel has this version"


def _last(logs: str, word: str, is_ours: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    for line in reversed(logs.split("\n")):
        if word in line:
            for found in _objects(line):
                if is_ours(found):
                    return found
    return None


def _objects(line: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a line, which may also contain output of other streams."""
    end = 0
    for begin in _OBJECT.finditer(line):
        if begin.start() < end:
            continue  # part of the previous object
        try:
            found, end = _DECODER.raw_decode(line, begin.start())
        except (ValueError, RecursionError):
            continue
        yield found
