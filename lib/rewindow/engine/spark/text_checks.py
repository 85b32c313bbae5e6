"""Check what Spark reads from text files without an error, but not as written: decimals of other locales, lost characters.

Numbers that no DOUBLE holds are infinite for Spark, and it takes the letters of Java's types: ``7D`` is 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql import types as T  # noqa: N812

from rewindow.contracts.decimal_texts import BY_COMMAS, BY_POINTS, MOST_DIGITS, UNCERTAIN
from rewindow.contracts.ingest import LogSpec
from rewindow.engine.spark.text_times import (
    NO_QUOTE,
    SEPARATOR,
    Formless,
    as_texts_within,
    day_of,
    has_wrong_times,
    time_of,
    times_within,
)
from rewindow.engine.spark.types_within import types_within
from rewindow.engine.worker.csv_files import lower_options, stated_encoding
from rewindow.engine.worker.double_texts import USUAL, infinities, takes_infinity

_LOST = "\ufffd"
"""Stands for bytes that were no character in the encoding. Only files in Unicode may have it themselves."""


def is_dateless(field: T.StructField, options: Mapping[str, str]) -> bool:
    """Return whether Spark would read times without a date into a column: no form of its times is stated."""
    return isinstance(field.dataType, T.TimestampType) and T.TimestampType in _formless(options)


def _formless(options: Mapping[str, str]) -> Formless:
    """Return the types of dates and times of which a source states no form, in which Spark would read them strictly."""
    stated = {name.lower() for name in options}
    kinds = {"dateformat": T.DateType, "timestampformat": T.TimestampType}
    return tuple(kind for option, kind in kinds.items() if option not in stated)


def as_texts(schema: T.StructType, options: Mapping[str, str]) -> T.StructType:
    """Return the schema with which to read a CSV file: some types as texts, which `checked` converts."""
    formless = _formless(options)

    def read_as(field: T.StructField) -> T.DataType:
        is_text = isinstance(field.dataType, formless) or _is_decimal(field) or _is_floating(field.dataType)
        return T.StringType() if is_text else field.dataType

    return T.StructType([T.StructField(field.name, read_as(field), field.nullable) for field in schema])


def as_written(schema: T.StructType, options: Mapping[str, str]) -> T.StructType:
    """Return the schema with which to read a JSON file: decimals with all of their digits, dates and times as texts."""
    formless = _formless(options)
    read = [(field, _as_written(as_texts_within(field.dataType, formless))) for field in schema]
    return T.StructType([T.StructField(field.name, kind, field.nullable) for field, kind in read])


def checked(frame: DataFrame, schema: T.StructType, spec: LogSpec, corrupt: str) -> DataFrame:
    """Return a frame with the columns of a schema. Values that were misread, or have lost characters, are in ``corrupt``."""
    is_csv, given = spec.source.format == "csv", lower_options(spec.source)
    keeps_lost = (stated_encoding(given) or "").lower().startswith("utf")
    quote = given.get("quote", '"')
    has_infinity = takes_infinity(spec.source.format, given)
    may_escape = is_csv and bool(quote) and "escape" not in given
    zone, formless = given.get("timezone", spec.zone), _formless(given)
    bad, converted = [F.col(corrupt)], {}
    for field in schema:
        column = F.col(_quoted(field.name))
        if is_csv and _is_decimal(field):
            number = converted[field.name] = _number(column, field.dataType, given.get("locale"))
            bad.append(F.when((column != "") & number.isNull(), column))
        elif is_csv and isinstance(field.dataType, formless):
            is_date = isinstance(field.dataType, T.DateType)
            time = converted[field.name] = day_of(column) if is_date else time_of(column, zone)
            bad.append(F.when((column != "") & time.isNull(), column))
        elif not is_csv and (read := as_texts_within(field.dataType, formless)) != field.dataType:
            converted[field.name] = times_within(column, field.dataType, zone, formless)
            bad.append(F.when(has_wrong_times(column, field.dataType, zone, formless), column.cast("string")))
            if _may_be_infinite(read) and not has_infinity:
                bad.append(F.when(_has_infinity(column, read), column.cast("string")))
        elif not is_csv and _is_decimal(field):
            number = converted[field.name] = _exact(column, field.dataType)
            bad.append(F.when(column.isNotNull() & number.isNull(), column.cast("string")))
        elif is_csv and _is_floating(field.dataType):
            double = converted[field.name] = _floating(column, field.dataType, given)
            bad.append(F.when((column != "") & double.isNull(), column))
        elif not has_infinity and _may_be_infinite(field.dataType):
            bad.append(F.when(_has_infinity(column, field.dataType), column.cast("string")))
        elif isinstance(field.dataType, T.StringType):
            if not keeps_lost:
                bad.append(F.when(column.contains(_LOST), column))
            if may_escape:
                bad.append(F.when(column.startswith(quote) & column.contains(f"\\{quote}"), column))
    return frame.withColumns({**converted, corrupt: F.coalesce(*bad)})


def _number(text: Expression, kind: T.DataType, locale: str | None) -> Expression:
    """Return a text as Spark's CSV parser reads it, if its groups of digits fit the locale and nothing is rounded; else null.

    Null, too, if no locale is stated and a comma may group digits or begin the fraction.
    """
    options = {"sep": SEPARATOR, "quote": NO_QUOTE, **({"locale": locale} if locale else {})}

    def read(value: Expression, decimal: str) -> Expression:
        return F.from_csv(value, f"number {decimal}", options)["number"]

    comma_begins_fraction = read(F.lit("1,5"), "decimal(3,1)") == F.lit("1.5").cast("decimal(3,1)")
    fits = F.when(comma_begins_fraction, ~text.contains(".") | text.rlike(BY_POINTS)).otherwise(
        ~text.contains(",") | text.rlike(BY_COMMAS)
    )
    fits &= ~text.rlike("[\r\n]") & (text != "")
    if locale is None:
        fits &= ~text.rlike(UNCERTAIN)
    number = _exact(read(text, _as_written(kind).simpleString()), kind)
    is_rounded = (number == 0) & text.rlike("^[^eE]*[1-9]")
    return F.when(fits & ~is_rounded, number)


def _floating(text: Expression, kind: T.DataType, options: Mapping[str, str]) -> Expression:
    """Return a text as a number of a type, with the source's texts of infinity; null if it is none that the type holds."""
    number, (plus, minus) = text.try_cast(kind), infinities(options)
    found = F.when(text.rlike(f"^{USUAL}$") & (F.abs(number) != float("inf")), number)
    found = found.when(text.rlike("^[+-]?NaN$") | (text == options.get("nanvalue", "NaN")), F.lit("NaN").cast(kind))
    if takes_infinity("csv", options):
        found = found.when(text == plus, F.lit("Infinity").cast(kind)).when(
            text == minus, F.lit("-Infinity").cast(kind)
        )
    return found


def _may_be_infinite(kind: T.DataType) -> bool:
    """Return whether values of a type are floating-point numbers, or contain some."""
    return any(map(_is_floating, types_within(kind)))


def _has_infinity(value: Expression, kind: T.DataType) -> Expression:
    """Return whether a value of such a type is infinite, or contains infinite numbers. Null values are not."""
    match kind:
        case T.ArrayType():
            found = F.exists(value, lambda one: _has_infinity(one, kind.elementType))
        case T.MapType():
            found = F.exists(F.map_values(value), lambda one: _has_infinity(one, kind.valueType))
        case T.StructType():
            fields = [field for field in kind if _may_be_infinite(field.dataType)]
            found = reduce(or_, (_has_infinity(value.getField(field.name), field.dataType) for field in fields))
        case _:
            found = F.abs(value) == float("inf")
    return F.coalesce(found, F.lit(False))


def _exact(number: Expression, kind: T.DataType) -> Expression:
    """Return a decimal as another type; null if it does not fit, or would be rounded."""
    found = number.try_cast(kind)
    return F.when(found == number, found)


def _as_written(kind: T.DataType) -> T.DataType:
    """Return the type with which to read values of a type: of a decimal, with as many digits after the point as there are.

    A parser rounds what its type does not hold. A decimal of `MOST_DIGITS` is rounded nevertheless.
    """
    if not isinstance(kind, T.DecimalType):
        return kind
    return T.DecimalType(MOST_DIGITS, MOST_DIGITS - kind.precision + kind.scale)


def _is_floating(kind: T.DataType) -> bool:
    return isinstance(kind, T.DoubleType | T.FloatType)


def _is_decimal(field: T.StructField) -> bool:
    return isinstance(field.dataType, T.DecimalType)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
