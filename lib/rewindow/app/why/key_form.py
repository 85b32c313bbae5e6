"""How a key is written on the command line, for words that name a column that the key does not have."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from rewindow.app.why.asked import ask
from rewindow.app.why.history import History
from rewindow.app.why.output import Output
from rewindow.errors import ConfigError, SourceError, UsageError
from rewindow.report.text import asked

_COLUMN_AND_VALUE = re.compile(r"([^\W\d][\w.-]*)=.+", re.DOTALL)


def check_columns(output: Output, words: Sequence[str], key: Mapping[str, Sequence[Any]]) -> None:
    """Raise `UsageError` (2) if the words name a column that the key does not have, and no record has them as its key.

    A key of one column may be given as its value alone, so ``colour=red`` may be a value. ``key``: that reading of the words,
    of which the table has no row.
    """
    columns = [column.name for column in output.own_columns]
    named = _COLUMN_AND_VALUE.fullmatch(words[0]) if len(words) == len(columns) == 1 else None
    if named is None or named[1] in columns or _is_landed(output, key):
        return
    message = (
        f"the key of {output.table} has no column {named[1]!r}: it is the column {columns[0]!r}. Write its value alone, or "
        f"{columns[0]}=VALUE{_example(output)}"
    )
    raise UsageError(message)


def _is_landed(output: Output, key: Mapping[str, Sequence[Any]]) -> bool:
    if output.branch.head is None:
        return False
    past = History(output, output.branch.head)
    try:
        past.check()
    except (ConfigError, SourceError):
        return False  # the logs cannot be read: the words are taken for what they look like
    found = ask(past, key, None, None)
    return bool(found.taken or found.waiting)


def _example(output: Output) -> str:
    """Return a command with a key that the table has, as the end of a sentence; nothing without rows."""
    row = output.any_row()
    column = output.own_columns[0].name
    if row is None or row[column] is None:
        return ""
    value = row[column].hex() if isinstance(row[column], bytes) else str(row[column])
    return f", as in `rewindow why {asked(output.table, output.branch.name)} {shlex.quote(f'{column}={value}')}`"
