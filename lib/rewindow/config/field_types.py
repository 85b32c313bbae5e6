"""Types of configuration fields: names, durations, intervals, schedules, locations. They parse text into validated values.

For invalid text, they raise a `ValueError` that says what to write instead. The loader adds file and key. For editors, each
type has a JSON Schema. It accepts everything that the type accepts, and possibly more.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ByteSize, ConfigDict, PlainValidator, WithJsonSchema

from rewindow.contracts.ingest import FILE_ORDER
from rewindow.contracts.reserved_names import RESERVED, is_reserved
from rewindow.errors import ConfigError
from rewindow.streams.duration import to_ms
from rewindow.streams.settings import OnError

_PART = r"[A-Za-z_][A-Za-z0-9_-]*"
NAME: Final[dict[str, Any]] = {"type": "string", "maxLength": 200, "pattern": f"^{_PART}$"}


def _name(value: object) -> str:
    text = _text(value, "low_activity")
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} is not a valid name: use ASCII letters, digits, _ and -, starting with a letter or _"
        )
    return text


Name = Annotated[str, PlainValidator(_name), WithJsonSchema(NAME)]
DOTTED: Final[dict[str, Any]] = {"type": "string", "maxLength": 200, "pattern": rf"^{_PART}(\.{_PART})*$"}


def _dotted(value: object) -> str:
    text = _text(value, "raw.events")
    if not _DOTTED.fullmatch(text):
        raise ValueError(
            f"{text!r} is not a valid name: use parts of ASCII letters, digits, _ and -, joined by single dots"
        )
    return text


DottedName = Annotated[str, PlainValidator(_dotted), WithJsonSchema(DOTTED)]


def _output_table(value: object) -> str:
    text = _dotted(value)
    if is_reserved(text):
        raise ValueError(f"{text!r} uses a name that rewindow reserves ({', '.join(RESERVED)}): choose another name")
    if "__" in text:
        raise ValueError(f"{text!r} contains a double underscore, which marks tables of branches: use a single one")
    return text


OutputTable = Annotated[str, PlainValidator(_output_table), WithJsonSchema(DOTTED)]
FUNCTION: Final[dict[str, Any]] = {
    "type": "string",
    "maxLength": 200,
    "pattern": r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$",
}


def _function(value: object) -> str:
    text = _text(value, "jobs.low_activity:build_topology")
    if not _FUNCTION.fullmatch(text):
        raise ValueError(f"{text!r} is not a function: write module:function, like jobs.low_activity:build_topology")
    return text


Function = Annotated[str, PlainValidator(_function), WithJsonSchema(FUNCTION)]
_NOT_IN_COLUMNS = r"\u0000-\u001f\s!-/:-@\[-^`{-~"
"""Blanks and all ASCII punctuation except the underscore. Letters of all scripts are allowed."""
_COLUMN: Final[dict[str, Any]] = {
    "type": "string",
    "maxLength": 200,
    "pattern": f"^[^0-9{_NOT_IN_COLUMNS}][^{_NOT_IN_COLUMNS}]*$",
}


def _column(value: object) -> str:
    text = _text(value, "user_id")
    if not text.isidentifier():
        raise ValueError(f"{text!r} cannot be a field of a record: rename it with columns: {{other_name: {text!r}}}")
    return text


Column = Annotated[str, PlainValidator(_column), WithJsonSchema(_COLUMN)]
TEXT: Final[dict[str, Any]] = {"type": "string", "maxLength": 200, "pattern": r"^[^\u0000-\u001f\u007f]+$"}


def _old_name(value: object, example: str = "User Id") -> str:
    # A header may have any characters, such as line breaks and no-break spaces.
    return value if isinstance(value, str) and value else _text(value, example)


_OLD_NAME: Final[dict[str, Any]] = {"type": "string", "minLength": 1}
OldColumn = Annotated[str, PlainValidator(_old_name), WithJsonSchema(_OLD_NAME)]
_COLUMNS: Final[dict[str, Any]] = {"type": "array", "items": _COLUMN, "minItems": 1, "uniqueItems": True}


def _columns(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"{value!r} is not a list of columns: write it like user_id or [carrier, origin]")
    columns = tuple(_column(item) for item in value)
    if len(set(columns)) < len(columns):
        raise ValueError(f"[{', '.join(columns)}] names a column twice: list each column once")
    return columns


Columns = Annotated[tuple[str, ...], PlainValidator(_columns), WithJsonSchema(_COLUMNS)]


def _row_order(value: object) -> str | tuple[str, ...]:
    if isinstance(value, str) and value != FILE_ORDER:
        raise ValueError(f"{value!r} is not an order of rows: write `file`, or a list of columns, like [version]")
    return FILE_ORDER if value == FILE_ORDER else _columns(value)


RowOrder = Annotated[
    str | tuple[str, ...],
    PlainValidator(_row_order),
    WithJsonSchema({"anyOf": [{"const": FILE_ORDER}, _COLUMNS]}),
]
FIELDS: Final[dict[str, Any]] = {"type": "array", "items": _OLD_NAME, "minItems": 1}


def _fields(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"{value!r} is not a list of fields: write it like [coupon, address.zip]")
    return tuple(_old_name(item, "address.zip") for item in value)


Fields = Annotated[tuple[str, ...], PlainValidator(_fields), WithJsonSchema(FIELDS)]


def _column_or_columns(value: object) -> str | tuple[str, ...]:
    return _column(value) if value is None or isinstance(value, str | bool) else _columns(value)


ColumnOrColumns = Annotated[
    str | tuple[str, ...],
    PlainValidator(_column_or_columns),
    WithJsonSchema({"anyOf": [_COLUMN, _COLUMNS]}),
]


def _timestamp(value: object) -> str:
    return _function(value) if isinstance(value, str) and ":" in value else _column(value)


TimestampSource = Annotated[str, PlainValidator(_timestamp), WithJsonSchema({"anyOf": [_COLUMN, FUNCTION]})]


def _duration(value: object) -> int:
    if value == 0 and not isinstance(value, bool):
        return 0
    if value is None:
        raise ValueError("is empty: write it like 500ms, 10s, 30m, 1h30m, 2d or 1w")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("is not a duration: write it like 500ms, 10s, 30m, 1h30m, 2d or 1w")
    if not isinstance(value, str):
        raise ValueError(f"{value!r} has no unit: write it like 500ms, 10s, 30m, 1h30m, 2d or 1w")
    try:
        length = to_ms(value)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    if not 0 <= length <= _MAX_MS:
        raise ValueError(f"{value!r} is out of range: use 0 to 10,000 years")
    return length


def duration(*words: str) -> dict[str, Any]:
    """Return the schema of a duration. ``words``: texts that are allowed instead of a duration."""
    length = {"type": "string", "pattern": r"^\s*(0|([0-9]{1,19}(ms|[smhdw]))+)\s*$"}
    return {"anyOf": [{"const": 0}, length, *({"const": word} for word in words)]}


DurationMs = Annotated[int, PlainValidator(_duration), WithJsonSchema(duration())]


def _duration_or(word: str) -> PlainValidator:
    def read(value: object) -> int | None:
        if value == word:
            return None
        if value is None:
            raise ValueError(f"is empty: write a duration or {word}")
        try:
            return _duration(value)
        except ValueError as error:
            raise ValueError(f"{error}, or {word}") from error

    return PlainValidator(read)


DurationMsOrForever = Annotated[int | None, _duration_or("forever"), WithJsonSchema(duration("forever"))]
DurationMsOrNone = Annotated[int | None, _duration_or("none"), WithJsonSchema(duration("none"))]


@dataclass(frozen=True, slots=True)
class Every:
    """An interval of arrival: ``count`` units. ``ms s m h`` are fixed lengths; ``d w mo y`` follow the calendar."""

    count: int
    unit: str

    def __str__(self) -> str:
        """Return the interval as written in the configuration."""
        return f"{self.count}{self.unit}"


_INTERVAL: Final[dict[str, Any]] = {
    "type": "string",
    "pattern": "^([1-9][0-9]{0,5}(mo|ms|[smhdwy])|([0-9]{1,6}(ms|[smh]))+)$",
}


def _every(value: object) -> Every:
    if isinstance(value, Every):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        raise ValueError(f"{value!r} has no unit: write it like 1h, 1d, 1w, 1mo or 1y")
    text = _text(value, "1h, 1d, 1w, 1mo or 1y")
    whole = _EVERY.fullmatch(text)
    if whole:
        return Every(int(whole.group(1)), whole.group(2))
    if not re.fullmatch(r"(?:[0-9]{1,6}(?:ms|[smh]))+", text):
        raise ValueError(f"{text!r} is not an interval: write it like 15m, 1h, 1h30m, 1d, 1w, 1mo or 1y")
    length = to_ms(text)
    if not length:
        raise ValueError(f"{text!r} is empty: an interval must be longer than 0")
    # The largest unit that divides the length is used, so that each interval has only one spelling: 1h30m becomes 90m.
    unit = next(unit for unit in ("h", "m", "s", "ms") if length % _FIXED_UNITS[unit] == 0)
    return Every(length // _FIXED_UNITS[unit], unit)


EveryInterval = Annotated[Every, PlainValidator(_every), WithJsonSchema(_INTERVAL)]


def known_zone(value: object) -> str:
    """Return the name of a time zone. Raises `ValueError` for a time zone that does not exist."""
    import pendulum  # noqa: PLC0415 - most commands read no time zone

    text = _text(value, "Europe/Berlin")
    if text not in pendulum.timezones():
        close = difflib.get_close_matches(text, pendulum.timezones(), n=1)
        hint = f"did you mean `{close[0]}`? Use" if close else "use"
        raise ValueError(f"{text!r} is not a time zone: {hint} an IANA name such as UTC or Europe/Berlin")
    return text


Zone = Annotated[str, PlainValidator(known_zone), WithJsonSchema(TEXT)]
_POLICY: Final[dict[str, Any]] = {
    "type": "string",
    "pattern": "^(fail|quarantine|retry [1-9][0-9]{0,2}( quarantine)?)$",
}


def _policy(value: object) -> OnError:
    try:
        return OnError.parse(value)
    except ConfigError as error:
        close = (
            difflib.get_close_matches(value, ("fail", "quarantine", "retry 3"), n=1) if isinstance(value, str) else []
        )
        raise ValueError(f"{error}{(close and f'. Did you mean `{close[0]}`?') or ''}") from error


Policy = Annotated[OnError, PlainValidator(_policy), WithJsonSchema(_POLICY)]
CRON: Final[dict[str, Any]] = {
    "type": "string",
    "pattern": r"^(@(hourly|daily|weekly|monthly|yearly)|([A-Za-z0-9*/,#?L-]+ +){4}[A-Za-z0-9*/,#?L-]+)$",
}


def _cron(value: object) -> str:
    return valid_cron(_text(value, '"10 * * * *"'))


Cron = Annotated[str, PlainValidator(_cron), WithJsonSchema(CRON)]


def _location(value: object) -> str:
    text = _text(value, "warehouse, /data/warehouse or s3://bucket/warehouse")
    scheme = _SCHEME.match(text)
    if scheme and scheme.group(1).lower() not in _SCHEMES:
        raise ValueError(f"{scheme.group(1)}:// is not supported: use a path, or one of {', '.join(_SCHEMES)}")
    if scheme and re.match(r"[^/@]*:[^/@]*@", text[scheme.end() :]):
        raise ValueError("contains a password: pass it to Spark (spark: in the target) or in the environment instead")
    if text.startswith("~"):
        raise ValueError(f"{text!r} begins with ~, which is not replaced here: write the whole path")
    if ".." in re.split(r"[/\\]", text):
        raise ValueError(f"{text!r} contains '..': write a path below the project's root, or an absolute path")
    return text


Location = Annotated[str, PlainValidator(_location), WithJsonSchema(TEXT)]
_SCALAR: Final[dict[str, Any]] = {"type": ["string", "number", "boolean"]}


def _text_option(value: object) -> str | dict[str, str]:
    """Return an option of text files: a scalar, or a map from column to pattern."""
    if isinstance(value, dict):
        return {str(column): _spark_text(pattern) for column, pattern in value.items()}
    return _spark_text(value)


TextOption = Annotated[
    str | dict[str, str],
    PlainValidator(_text_option),
    WithJsonSchema({"anyOf": [_SCALAR, {"type": "object", "additionalProperties": _SCALAR}]}),
]
_SPARK_KEY: Final = r"^spark\.[A-Za-z0-9_.-]+$"


def _spark_text(value: object) -> str:
    """Return a YAML scalar as Spark spells it: ``true``, ``4``, ``2g``."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    # The message does not show the value, because it may be a secret.
    raise ValueError("must be a single value: text, a number, true or false")


_SparkText = Annotated[str, PlainValidator(_spark_text), WithJsonSchema(_SCALAR)]


def _settings(key: str) -> dict[str, Any]:
    """Return the schema of settings by name. ``key`` is the pattern of names."""
    return {"type": "object", "patternProperties": {key: _SCALAR}, "additionalProperties": False}


def _spark_settings(value: dict[str, str]) -> dict[str, str]:
    for key in value:
        if not re.fullmatch(r"spark\.[A-Za-z0-9_.-]+", key):
            raise ValueError(f"{key!r} is not a Spark setting: use a name that starts with spark.")
    return value


SparkSettings = Annotated[dict[Any, _SparkText], AfterValidator(_spark_settings), WithJsonSchema(_settings(_SPARK_KEY))]
_STORAGE_KEY: Final = "^(AWS|AZURE|GOOGLE)_[A-Z0-9_]+$"


def _storage_options(value: dict[str, str]) -> dict[str, str]:
    for key in value:
        if not re.fullmatch(r"(AWS|AZURE|GOOGLE)_[A-Z0-9_]+", key):
            raise ValueError(
                f"{key!r} is not a storage option: use a name in capitals that starts with AWS_, AZURE_ or GOOGLE_"
            )
    return value


StorageOptions = Annotated[
    dict[Any, _SparkText], AfterValidator(_storage_options), WithJsonSchema(_settings(_STORAGE_KEY))
]
_BYTES: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "integer", "minimum": 1 << 20},
        {"type": "string", "pattern": r"^\s*[0-9]*\.?[0-9]+\s*[A-Za-z]*\s*$"},
    ]
}
Bytes = Annotated[ByteSize, WithJsonSchema(_BYTES)]
_NAME = re.compile(_PART)
_DOTTED = re.compile(rf"{_PART}(?:\.{_PART})*")
_FUNCTION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_EVERY = re.compile(r"([1-9][0-9]{0,5})(mo|ms|[smhdwy])")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SCHEMES: Final = ("abfs", "abfss", "adl", "dbfs", "file", "gs", "hdfs", "s3", "s3a", "wasbs")
_LONGEST = 200
_MAX_MS: Final = 10_000 * 366 * 86_400_000
_FIXED_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_WORD = re.compile(r"@(?:hourly|daily|weekly|monthly|yearly)")
_CRON = re.compile(r"(?:[A-Za-z0-9*/,#?L-]+ +){4}[A-Za-z0-9*/,#?L-]+")
_NUMBER = re.compile(r"(?<![/#\d])\d+")
"""Matches values in a field of a cron schedule, but neither a step (``*/15``) nor an ordinal (``1#2``, the second Monday)."""
_STEP_0 = re.compile(r"/0+(?!\d)")
_FIELDS: Final = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day", 1, 31, ("l",)),
    ("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    ("weekday", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
_MOST_DAYS: Final = {"2": 29, "feb": 29} | dict.fromkeys(("4", "apr", "6", "jun", "9", "sep", "11", "nov"), 30)
"""Maps each month that has no 31st, by number and by name, to the number of its days."""


class MisfitError(ValueError):
    """Each value of a block is valid, but they do not fit together.

    ``keys`` is the path from the block to the value that the message is about.
    """

    def __init__(self, message: str, *keys: int | str) -> None:
        super().__init__(message)
        self.keys = keys


def valid_cron(text: str) -> str:
    """Return a valid cron schedule unchanged. Raises `ValueError` for an invalid one, and names the wrong field."""
    if _WORD.fullmatch(text):
        return text
    if not _CRON.fullmatch(text):
        raise ValueError(
            f'{text!r} is not a cron schedule: write five fields in quotes, like "10 * * * *", or "@daily"'
        )
    for field, (name, low, high, words) in zip(text.split(), _FIELDS, strict=True):
        for number in _NUMBER.findall(field):
            if not low <= int(number) <= high:
                raise ValueError(
                    f"{text!r} is not a cron schedule: {name} {number} is not in the range {low} to {high}"
                )
        for word in re.findall(r"[A-Za-z]+", field):
            if word.lower() not in words:
                raise ValueError(f"{text!r} is not a cron schedule: {word!r} is not a valid {name}")
        if _STEP_0.search(field):
            raise ValueError(f"{text!r} is not a cron schedule: the {name} has a step of 0")
    _, _, day, month, weekday = text.split()
    longest = max(_MOST_DAYS.get(part.lower().lstrip("0"), 31) for part in month.split(","))
    if weekday == "*" and all(part.isdigit() and int(part) > longest for part in day.split(",")):
        raise ValueError(f"{text!r} would never run: month {month} has no day {day}")
    return text


class ConfigValue(BaseModel):
    """A part of a configuration file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=False)


def _text(value: object, example: str) -> str:
    if value is None:
        raise ValueError(f"is empty: write it like {example}")
    if isinstance(value, bool):
        word = str(value).lower()
        raise ValueError(f"{word} is not text (YAML reads yes, no, on and off as true and false): write it in quotes")
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text: write it like {example}")
    if not value or len(value) > _LONGEST or not value.isprintable():
        raise ValueError(f"must have 1 to {_LONGEST} printable characters, like {example}")
    return value
