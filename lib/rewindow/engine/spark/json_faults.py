"""Find JSON texts that Spark reads without an error, but not as they are written.

It takes the first value of a text and says nothing about the rest: two objects in one line and, with ``multiLine``, objects one
after the other instead of a list. And it replaces half a character by a question mark. A text that is not even one value is
another matter: the landing names it, or quarantines it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column as Expression
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql import types as T  # noqa: N812

from rewindow.contracts.ingest import LogSpec, SourceLook
from rewindow.engine.spark.ingest_frames import read_options
from rewindow.engine.spark.source_texts import TEXT, first_fault
from rewindow.engine.spark.stated_encoding import FIX, NOT_UTF_8, stated_utf_8
from rewindow.engine.worker.csv_files import is_multi_line, lower_options
from rewindow.errors import DataError

_VALUES = T.ArrayType(T.StringType())
_UNREAD = "_unread"
_ROW = T.StructType([T.StructField(_UNREAD, T.StringType())])
_ESCAPED = r"(?<!\\)(?:\\\\){0,99}\\u"
_HIGH, _LOW = "[dD][89abAB][0-9a-fA-F]{2}", "[dD][c-fC-F][0-9a-fA-F]{2}"
_PAIR, _HALF = rf"{_ESCAPED}{_HIGH}\\u{_LOW}", rf"{_ESCAPED}(?:{_HIGH}|{_LOW})"
_MORE: Final = "it has more after its JSON value, and Spark reads only that"
_MORE_WHOLE: Final = "it has more than one JSON value, and with `multiLine` Spark reads only the first of a file"
_HALF_CHARACTER: Final = "it has half a character (an escaped surrogate without the other one)"
_FIXES: Final[Mapping[str, str]] = {
    _MORE: "Write each value in a line of its own",
    _MORE_WHOLE: "Write them as a list, or each in a line of its own, without `multiLine`",
    _HALF_CHARACTER: "Write the character, or leave it out",
    NOT_UTF_8: FIX,
}


def check_json_texts(spark: SparkSession, spec: LogSpec, look: SourceLook) -> None:
    """Raise `DataError` (65) for the first such text in the files to land."""
    text, source = F.col(TEXT), spec.source
    faults = {
        **stated_utf_8(source),
        _MORE_WHOLE if is_multi_line(lower_options(source)) else _MORE: _goes_on(text, read_options(spec, look)),
        _HALF_CHARACTER: F.regexp_replace(text, _PAIR, "").rlike(_HALF),
    }
    found = first_fault(spark, source, look.fresh or look.rest, faults)
    if found is not None:
        fault, where, begin = found
        told = "" if fault == _MORE_WHOLE else f": {begin}"
        message = f"log {spec.topic}: {where}: {fault}{told}. Nothing was landed. {_FIXES[fault]}"
        raise DataError(message)


def _goes_on(text: Expression, options: Mapping[str, str]) -> Expression:
    """Return whether a text has one value that Spark reads, and then something else than blanks and commas."""
    read = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _UNREAD}
    value = F.regexp_replace(text, "^\ufeff|[,\\s]+$", "")
    in_list = F.size(F.from_json(F.concat(F.lit("["), value, F.lit("\n]")), _VALUES, read))
    is_object = F.from_json(value, _ROW, read)[_UNREAD].isNull()
    is_list = F.from_json(value, _VALUES, read).isNotNull()
    return (in_list.isNull() | (in_list > 1)) & (is_object | is_list)
