"""How a key is written on the command line, for words that name a column that the key does not have."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from rewindow.app.why.asked import ask
from rewindow.app.why.history import History
from rewindow.app.why.output import Output, parse_key
from rewindow.app.why.windows import key_words
from rewindow.errors import ConfigError, SourceError, UsageError
from rewindow.report.text import asked
from rewindow.streams.serde.schema import Column

_COLUMN_AND_VALUE = re.compile(r"([^\W\d][\w.-]*)=.+", re.DOTALL)


def read_key(output: Output, words: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Return what the columns of a key may be (`parse_key`).

    A refusal (2) shows a key that the table has, or how an option is told from a key that begins with a minus sign.
    """
    try:
        return parse_key(output.own_columns, words)
    except UsageError as error:
        message = f"{error}{_options_first(output, words) or example(output)}"
        raise UsageError(message) from error


def _options_first(output: Output, words: Sequence[str]) -> str:
    """Return the command with the options before the key, if words after the key look like options; otherwise nothing."""
    first = next((number for number, word in enumerate(words) if number and word.startswith("--")), None)
    if first is None:
        return ""
    key, options = words[:first], words[first:]
    command = f"rewindow why {asked(output.table, output.branch.name)} {shlex.join([*options, '--', *key])}"
    return (
        f". {options[0]} is read as a part of the key, because it follows `--`. Write options before that: `{command}`"
    )


def check_columns(output: Output, words: Sequence[str], key: Mapping[str, Sequence[Any]]) -> None:
    """Raise `UsageError` (2) if the words name a column that the key does not have, and no record has them as its key.

    A key of one column may be given as its value alone, so ``colour=red`` may be a value. ``key``: that reading of the words,
    of which the table has no row.
    """
    columns = [column.name for column in output.own_columns]
    named = _COLUMN_AND_VALUE.fullmatch(words[0]) if len(words) == len(columns) == 1 else None
    if named is None or named[1] in columns or is_landed(output, key):
        return
    message = (
        f"the key of {output.table} has no column {named[1]!r}: it is the column {columns[0]!r}. Write its value alone, or "
        f"{columns[0]}=VALUE{example(output)}"
    )
    raise UsageError(message)


def is_landed(output: Output, key: Mapping[str, Sequence[Any]]) -> bool:
    """Whether a landed record has a key. False if the logs cannot be read."""
    if output.branch.head is None:
        return False
    past = History(output, output.branch.head)
    try:
        past.check()
    except (ConfigError, SourceError):
        return False
    found = ask(past, key, None, None)
    return bool(found.taken or found.waiting)


def example(output: Output) -> str:
    """Return a command with a key that the table has, as the end of a sentence; nothing without rows."""
    row = output.any_row()
    if row is None or any(row[column.name] is None for column in output.own_columns):
        return ""
    words = [f"{column.name}={_as_word(row[column.name], column)}" for column in output.own_columns]
    return f", as in `rewindow why {key_words(output, words)}`"


def _as_word(value: Any, column: Column) -> str:
    """Return a value as people write it; a text in a column of JSON needs no quotes."""
    if column.type == "json" and isinstance(text := json.loads(value), str):
        return text
    return value.hex() if isinstance(value, bytes) else str(value)
