"""What the commands of a wheel task printed, found again in the task's logs, which Databricks keeps (their last 5 MB).

The logs have everything that any code wrote to stdout or stderr. Ours is the last line with a JSON object that has what
`rewindow run --json` prints, or, of a command that failed, its error.
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
    """The results of a job run's tasks by their keys, and of those that have none, why."""

    results: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def result_in(logs: str) -> dict[str, Any] | None:
    """Return what `run` printed as JSON; None if it stands nowhere."""
    return _last(logs, '"published"', lambda found: isinstance(found.get("published"), list) and "run" in found)


def error_in(logs: str, code: int) -> str | None:
    """Return the message of the command that failed with this exit code; None if it stands nowhere."""
    found = _last(logs, '"exit_code"', lambda found: found.get("exit_code") == code and "error" in found)
    return None if found is None else str(found["error"])


def why_missing(logs: str | None, *, is_truncated: bool) -> str:
    """Return why there is no result in a task's logs."""
    if not logs:
        return "Databricks has no logs of the task"
    if is_truncated:
        return "Databricks keeps the last 5 MB of a task's logs, and the result is not in them"
    return "no result is in the task's logs: is the wheel of this version deployed?"


def _last(logs: str, word: str, is_ours: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    for line in reversed(logs.split("\n")):
        if word in line:
            for found in _objects(line):
                if is_ours(found):
                    return found
    return None


def _objects(line: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a line. What another stream wrote may stand before and after, on the same line."""
    end = 0
    for begin in _OBJECT.finditer(line):
        if begin.start() < end:
            continue  # inside the one before
        try:
            found, end = _DECODER.raw_decode(line, begin.start())
        except (ValueError, RecursionError):
            continue
        yield found
