"""Read texts as dates and times, but only whole ones. Null stands for any other text.

Spark takes ``10:00`` as that time on the day of its call, a year as its first moment, and of a date only the beginning.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql import types as T  # noqa: N812

_DATE = r"^\s*[+-]?\d{4,6}-\d"
_WHOLE_DATE = r"^\s*[+-]?\d{4,6}-\d{1,2}-\d{1,2}\s*$"
_SECONDS = r"^-?\d{9,10}(\.\d+)?$"
"""A number in json that Spark takes for seconds since 1970. With more digits it has another unit, with fewer it may be a year."""
Formless = tuple[type[T.DataType], ...]
"""The types of dates and times of which a source states no form."""
SEPARATOR, NO_QUOTE = "\u0001", "\u0000"
"""With which a text is one value of csv."""


def has_date(text: Expression) -> Expression:
    """Return whether a text begins like a date, at least with year and month."""
    return text.rlike(_DATE)


def day_of(text: Expression) -> Expression:
    """Return a text as a date."""
    return F.when(text.rlike(_WHOLE_DATE), text.try_cast("date"))


def time_of(text: Expression, zone: str) -> Expression:
    """Return a text as a time, as Spark's CSV parser reads it."""
    options = {"sep": SEPARATOR, "quote": NO_QUOTE, "timeZone": zone}
    return F.when(has_date(text) & ~text.rlike("[\r\n]"), F.from_csv(text, "time timestamp", options)["time"])


def json_time_of(text: Expression, zone: str) -> Expression:
    """Return a text or number of json, given as a text, as a time."""
    seconds = F.timestamp_seconds(text.try_cast("decimal(20,6)"))
    return F.when(text.rlike(_SECONDS), seconds).otherwise(time_of(text, zone))


def as_texts_within(kind: T.DataType, formless: Formless) -> T.DataType:
    """Return a type with which json is read: one with texts instead of some dates and times, at any depth."""
    match kind:
        case _ if isinstance(kind, formless):
            return T.StringType()
        case T.ArrayType():
            return T.ArrayType(as_texts_within(kind.elementType, formless))
        case T.MapType():
            return T.MapType(kind.keyType, as_texts_within(kind.valueType, formless))
        case T.StructType():
            return T.StructType([T.StructField(one.name, as_texts_within(one.dataType, formless)) for one in kind])
    return kind


def times_within(value: Expression, kind: T.DataType, zone: str, formless: Formless) -> Expression:
    """Return a value that was read with `as_texts_within` as a value of its type."""
    if as_texts_within(kind, formless) == kind:
        return value
    match kind:
        case T.DateType():
            return day_of(value)
        case T.TimestampType():
            return json_time_of(value, zone)
        case T.ArrayType():
            return F.transform(value, lambda one: times_within(one, kind.elementType, zone, formless))
        case T.MapType():
            return F.transform_values(value, lambda _, one: times_within(one, kind.valueType, zone, formless))
        case T.StructType():
            fields = (
                times_within(value.getField(one.name), one.dataType, zone, formless).alias(one.name) for one in kind
            )
            return F.when(value.isNotNull(), F.struct(*fields))
    return value


def has_wrong_times(value: Expression, kind: T.DataType, zone: str, formless: Formless) -> Expression:
    """Return whether a value that was read with `as_texts_within` has texts that are no dates or times."""
    found = F.lit(False)
    match kind:
        case _ if isinstance(kind, formless):
            found = value.isNotNull() & times_within(value, kind, zone, formless).isNull()
        case T.ArrayType():
            found = F.exists(value, lambda one: has_wrong_times(one, kind.elementType, zone, formless))
        case T.MapType():
            values = F.map_values(value)
            found = F.exists(values, lambda one: has_wrong_times(one, kind.valueType, zone, formless))
        case T.StructType():
            fields = [has_wrong_times(value.getField(one.name), one.dataType, zone, formless) for one in kind]
            found = reduce(or_, fields, found)
    return F.coalesce(found, F.lit(False))
