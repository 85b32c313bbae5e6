"""Find bytes that are no UTF-8 in files whose source says that they are.

Where a source names no encoding, the character that stands for lost ones is refused. A source that names UTF-8 may have that
character itself, so only the bytes tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rewindow.contracts.ingest import SourceSpec
from rewindow.engine.spark.source_texts import TEXT
from rewindow.engine.worker.csv_files import encoding_of, lower_options, stated_encoding

NOT_UTF_8: Final = "it is not UTF-8, as `encoding` says"
FIX: Final = "Convert the file, or, if all files have another encoding, name that"


def stated_utf_8(source: SourceSpec) -> Mapping[str, Expression]:
    """Return the condition of this fault, if the source names UTF-8."""
    is_stated = stated_encoding(lower_options(source)) is not None
    return {NOT_UTF_8: ~F.is_valid_utf8(F.col(TEXT))} if is_stated and encoding_of(source) == "utf-8-sig" else {}
