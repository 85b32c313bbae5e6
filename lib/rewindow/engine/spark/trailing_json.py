"""Find JSON texts that go on after their value. Spark takes the first value and says nothing about the rest.

Such are two objects in one line and, with ``multiLine``, objects one after the other instead of a list: all but the first would
be lost. A text that is not even one value is another matter: the landing names it, or quarantines it.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql import types as T  # noqa: N812

from rewindow.contracts.ingest import LogSpec, Piece, SourceLook
from rewindow.engine.spark.exact_paths import exact_paths
from rewindow.engine.spark.ingest_frames import path_of_row, read_options
from rewindow.engine.worker.csv_files import encoding_of
from rewindow.engine.worker.file_fields import local_files, shown
from rewindow.errors import DataError

_VALUES = T.ArrayType(T.StringType())
_UNREAD = "_unread"
_ROW = T.StructType([T.StructField(_UNREAD, T.StringType())])
_SHOWN_TEXT = 200


def check_single_values(spark: SparkSession, spec: LogSpec, look: SourceLook) -> None:
    """Raise `DataError` (65) for the first text in the files to land that has more after its value. One job reads them."""
    pieces, options = look.fresh or look.rest, read_options(spec, look)
    if not pieces:
        return
    given = {name.lower(): value for name, value in options.items()}
    text = F.col("text")
    wrong = _texts(spark, spec, pieces, given).where(_goes_on(text, options))
    first = wrong.select("path", F.left(text, F.lit(_SHOWN_TEXT)).alias("text")).orderBy("path").limit(1).collect()
    if first:
        raise _error(spec, pieces, first[0], is_whole=_is_whole(given))


def _is_whole(given: Mapping[str, str]) -> bool:
    return given.get("multiline", "false").lower() == "true"


def _texts(spark: SparkSession, spec: LogSpec, pieces: tuple[Piece, ...], given: Mapping[str, str]) -> DataFrame:
    """Return the texts in which Spark looks for a value: lines, or whole files with ``multiLine``."""
    paths, path, end = exact_paths(pieces), path_of_row().alias("path"), given.get("linesep")
    encoding = codecs.lookup(encoding_of(spec.source)).name
    if not encoding.startswith(("utf-16", "utf-32")):  # in all others, the signs of JSON are those of ASCII
        texts = spark.read.text(paths, wholetext=_is_whole(given), lineSep=end)
        return texts.select(path, F.col("value").alias("text"))
    content = F.decode(F.col("content"), encoding)
    ends = F.lit("\r?\n" if end is None else f"\\Q{end}\\E")
    text = content if _is_whole(given) else F.explode(F.split(content, ends))
    return spark.read.format("binaryFile").load(paths).select(path, text.alias("text"))


def _goes_on(text: Expression, options: Mapping[str, str]) -> Expression:
    """Return whether a text has one value that Spark reads, and then something else than blanks and commas."""
    read = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _UNREAD}
    value = F.regexp_replace(text, "^\ufeff|[,\\s]+$", "")
    in_list = F.size(F.from_json(F.concat(F.lit("["), value, F.lit("\n]")), _VALUES, read))
    is_object = F.from_json(value, _ROW, read)[_UNREAD].isNull()
    is_list = F.from_json(value, _VALUES, read).isNotNull()
    return (in_list.isNull() | (in_list > 1)) & (is_object | is_list)


def _error(spec: LogSpec, pieces: tuple[Piece, ...], found: Row, *, is_whole: bool) -> DataError:
    where, text = shown(spec.source, found["path"]), found["text"].strip()
    if is_whole:
        what = "has more than one JSON value, and with `multiLine` Spark reads only the first of a file"
        fix = "Write them as a list, or each in a line of its own, without `multiLine`"
    else:
        line = _line_of(spec, pieces, found["path"], text)
        where += f", line {line}" if line else ""
        what, fix = (
            f"has more after its JSON value, and Spark reads only that: {text}",
            "Write each value in a line of its own",
        )
    return DataError(f"log {spec.topic}: {where}: it {what}. Nothing was landed. {fix}")


def _line_of(spec: LogSpec, pieces: tuple[Piece, ...], path: str, text: str) -> int | None:
    """Return the number of the line that begins with a text; None for a file that is not local."""
    for file in local_files([piece for piece in pieces if piece.path == path]):
        with (
            pa.input_stream(str(file)) as raw,
            io.TextIOWrapper(raw, encoding_of(spec.source), errors="replace") as lines,
        ):
            return next((number for number, line in enumerate(lines, 1) if line.strip().startswith(text)), None)
    return None
