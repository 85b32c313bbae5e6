"""The texts in csv and json files, before anything parses them: their lines, or whole files with ``multiLine``."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.ingest import Piece, SourceSpec
from rewindow.engine.spark.exact_paths import exact_paths
from rewindow.engine.spark.ingest_frames import path_of_row
from rewindow.engine.worker.csv_files import encoding_of, is_multi_line, lower_options
from rewindow.engine.worker.file_fields import local_files, shown

TEXT, _PATH, _FAULT = "text", "path", "fault"
_SHOWN_TEXT = 200


def first_fault(
    spark: SparkSession, source: SourceSpec, pieces: Sequence[Piece], faults: Mapping[str, Expression]
) -> tuple[str, str, str] | None:
    """Return the fault of the first text that has one, where the text is, and its beginning. One job reads the files.

    ``faults`` are conditions on the column `TEXT`, by the names of the faults.
    """
    if not pieces or not faults:
        return None
    fault = F.coalesce(*(F.when(condition, F.lit(name)) for name, condition in faults.items())).alias(_FAULT)
    texts = _texts(spark, source, pieces).select(_PATH, fault, F.left(TEXT, F.lit(_SHOWN_TEXT)).alias(TEXT))
    first = texts.where(F.col(_FAULT).isNotNull()).orderBy(_PATH).limit(1).collect()
    if not first:
        return None
    path, text = first[0][_PATH], first[0][TEXT].strip()
    line = None if is_multi_line(lower_options(source)) else _line_of(source, pieces, path, text)
    return first[0][_FAULT], shown(source, path) + ("" if line is None else f", line {line}"), text


def _texts(spark: SparkSession, source: SourceSpec, pieces: Sequence[Piece]) -> DataFrame:
    options = lower_options(source)
    paths, path, end = exact_paths(pieces), path_of_row().alias(_PATH), options.get("linesep")
    encoding = encoding_of(source).lower().replace("_", "-")
    if not encoding.startswith(("utf-16", "utf-32")):  # in all others, quotes and brackets are those of ASCII
        texts = spark.read.text(paths, wholetext=is_multi_line(options), lineSep=end)
        return texts.select(path, F.col("value").alias(TEXT))
    content = F.decode(F.col("content"), encoding)
    ends = F.lit("\r?\n" if end is None else f"\\Q{end}\\E")
    text = content if is_multi_line(options) else F.explode(F.split(content, ends))
    return spark.read.format("binaryFile").load(paths).select(path, text.alias(TEXT))


def _line_of(source: SourceSpec, pieces: Sequence[Piece], path: str, text: str) -> int | None:
    """Return the number of the line that begins with a text; None if it cannot be told, as of a file that is not local."""
    for file in local_files([piece for piece in pieces if piece.path == path]):
        with suppress(LookupError), pa.input_stream(str(file)) as raw:  # Java may have encodings that Python has not
            lines = io.TextIOWrapper(raw, encoding_of(source), errors="replace")
            return next((number for number, line in enumerate(lines, 1) if line.strip().startswith(text)), None)
    return None
