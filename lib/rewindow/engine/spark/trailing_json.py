"""Find JSON texts that go on after their value. Spark takes the first value and says nothing about the rest.

Such are two objects in one line and, with ``multiLine``, objects one after the other instead of a list: all but the first would
be lost. A text that is not even one value is another matter: the landing names it, or quarantines it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column as Expression
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql import types as T  # noqa: N812

from rewindow.contracts.ingest import LogSpec, SourceLook
from rewindow.engine.spark.ingest_frames import read_options
from rewindow.engine.spark.source_texts import TEXT, first_text, is_whole
from rewindow.engine.worker.csv_files import lower_options
from rewindow.errors import DataError

_VALUES = T.ArrayType(T.StringType())
_UNREAD = "_unread"
_ROW = T.StructType([T.StructField(_UNREAD, T.StringType())])


def check_single_values(spark: SparkSession, spec: LogSpec, look: SourceLook) -> None:
    """Raise `DataError` (65) for the first text in the files to land that has more after its value."""
    found = first_text(spark, spec.source, look.fresh or look.rest, _goes_on(F.col(TEXT), read_options(spec, look)))
    if found is None:
        return
    where, text = found
    what = f"more after its JSON value, and Spark reads only that: {text}", "Write each value in a line of its own"
    if is_whole(lower_options(spec.source)):
        what = (
            "more than one JSON value, and with `multiLine` Spark reads only the first of a file",
            "Write them as a list, or each in a line of its own, without `multiLine`",
        )
    message = f"log {spec.topic}: {where}: it has {what[0]}. Nothing was landed. {what[1]}"
    raise DataError(message)


def _goes_on(text: Expression, options: Mapping[str, str]) -> Expression:
    """Return whether a text has one value that Spark reads, and then something else than blanks and commas."""
    read = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _UNREAD}
    value = F.regexp_replace(text, "^\ufeff|[,\\s]+$", "")
    in_list = F.size(F.from_json(F.concat(F.lit("["), value, F.lit("\n]")), _VALUES, read))
    is_object = F.from_json(value, _ROW, read)[_UNREAD].isNull()
    is_list = F.from_json(value, _VALUES, read).isNotNull()
    return (in_list.isNull() | (in_list > 1)) & (is_object | is_list)
