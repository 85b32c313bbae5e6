"""Reports about JSON lines: types that depend on the first lines, nulls, names that occur twice, numbers."""

from __future__ import annotations

from decimal import Decimal

from tests.refusals import refused
from tests.reported.csv_files import at_line, no_value, typed
from tests.reported.report import Landing, Report, github, json

STRUCT = {"schema": "n BIGINT, x STRUCT<a: BIGINT, b: STRING>"}


def lines(*values: str) -> str:
    """Return lines of JSON with the number of the line as `n`. A value is the text of the field `x`, or empty without it."""
    return "".join(
        f'{{"n": {number}, "x": {value}}}\n' if value else f'{{"n": {number}}}\n'
        for number, value in enumerate(values, start=1)
    )


REPEATED = '{"n": 1, "size": 9798, "size": 3266}\n{"n": 2, "size": 13064}\n{"errors","notparsing"}\n'

REPORTS: tuple[Report, ...] = (
    github(
        "duckdb/duckdb",
        11152,
        "An object with a field twice ended the query although errors were to be ignored.",
        "The line is refused, or goes to the quarantine with `unreadable: skip`; so does a line that is no object.",
        json("refused", REPEATED, refused=at_line(1, "a.json"), columns=("n", "size")),
        json("in quarantine", REPEATED, (2, 13064), columns=("n", "size"), log={"unreadable": "skip"}, quarantined=2),
        json(
            "twice in a nested object",
            lines('{"a": 1, "a": 2}', '{"a": 3}'),
            refused=at_line(1, "a.json"),
        ),
    ),
    github(
        "duckdb/duckdb",
        12861,
        "Whether a nested object had fields or was text depended on how many lines had null.",
        "All lines of the first landing decide, and nulls decide nothing.",
        *(
            json(
                f"{nulls} nulls",
                lines('{"one": 1, "two": "2"}', *["null"] * nulls),
                (1, {"one": 1, "two": "2"}),
                *((n, None) for n in range(2, nulls + 2)),
            )
            for nulls in (1, 10, 300)
        ),
    ),
    github(
        "duckdb/duckdb",
        7448,
        "A field that was null in thousands of lines was taken for a number, and the first text failed.",
        "It is text.",
        json(
            "text after nulls",
            lines(*['{"flag": null}'] * 40, '{"flag": "PressureError"}'),
            *((n, {"flag": None}) for n in range(1, 41)),
            (41, {"flag": "PressureError"}),
        ),
        Landing(
            "in the next file of a landing",
            "json",
            ({"a.json": lines("null", "null"), "b.json": '{"n": 3, "x": "PressureError"}\n'},),
            rows=((1, None), (2, None), (3, "PressureError")),
        ),
        Landing(
            "in the next landing",
            "json",
            ({"a.json": lines("null", "null")}, {"b.json": '{"n": 3, "x": "PressureError"}\n'}),
            rows=((1, None), (2, None), (3, "PressureError")),
            warned=("column-all-null",),
        ),
    ),
    github(
        "pola-rs/polars",
        29330,
        "A field that first occurs behind the lines that are read for the types was lost, without an error.",
        "It is a column, wherever it first occurs, also in a nested object.",
        json(
            "from line 1,001 on",
            lines(*[""] * 1_000, "10"),
            *((n, None) for n in range(1, 1_001)),
            (1_001, 10),
        ),
        json(
            "in a nested object",
            lines(*['{"a": 1}'] * 200, '{"a": 1, "b": 2}'),
            *((n, {"a": 1, "b": None}) for n in range(1, 201)),
            (201, {"a": 1, "b": 2}),
        ),
        Landing(
            "first in the next landing it is refused",
            "json",
            ({"a.json": lines("1")}, {"b.json": '{"n": 2, "x": 1, "late": 5}\n'}),
            rows=((1, 1),),
            refused=refused("file-field-unknown", field="late"),
        ),
    ),
    github(
        "duckdb/duckdb",
        13807,
        "Fields whose names differ in case were called duplicates.",
        "Names are case-sensitive. As columns of a log they are refused by name.",
        json(
            "within a list",
            lines('[{"name": "foo"}, {"Name": "bar"}]'),
            (1, [{"name": "foo", "Name": None}, {"name": None, "Name": "bar"}]),
        ),
        json(
            "as JSON",
            lines('[{"name": "foo"}, {"Name": "bar"}]'),
            (1, '[{"name": "foo"}, {"Name": "bar"}]'),
            source=typed("JSON"),
        ),
    ),
    github(
        "pola-rs/polars",
        6148,
        "An object without fields could not be read.",
        "It is landed.",
        json("an empty object in all lines", lines("{}", "{}"), (1, {}), (2, {})),
        json("an empty object in the first line", lines("{}", '{"a": 1}'), (1, {"a": None}), (2, {"a": 1})),
        json("an empty object as JSON", lines("{}"), (1, "{}"), source=typed("JSON")),
        json("an empty object where fields are declared", lines("{}"), (1, {"a": None, "b": None}), source=STRUCT),
    ),
    github(
        "pola-rs/polars",
        8572,
        "A column that is null in all lines disappeared.",
        "It is a column of nulls, and `land` says so.",
        json("inferred", lines("null"), (1, None), warned=("column-all-null",)),
        json("declared", lines("null"), (1, None), warned=("column-all-null",), source=typed("DOUBLE")),
        json("missing", lines(""), (1, None), warned=("column-all-null",), source=typed("STRING")),
    ),
    github(
        "pola-rs/polars",
        7382,
        "A first line with an empty list made the lists of later lines an error.",
        "All lines decide about the type of the items.",
        json("an empty list first", lines("[]", '[{"a": 1}]', "[]"), (1, []), (2, [{"a": 1}]), (3, [])),
        json(
            "null first",
            lines("null", '[{"a": 1, "b": "x"}]', '[{"a": 2}]'),
            (1, None),
            (2, [{"a": 1, "b": "x"}]),
            (3, [{"a": 2, "b": None}]),
        ),
        json(
            "empty lists within",
            lines(*["[]"] * 100, '[{"b": []}]'),
            *((n, []) for n in range(1, 101)),
            (101, [{"b": []}]),
        ),
    ),
    github(
        "pola-rs/polars",
        13183,
        "One null made all numbers of its column null.",
        "The numbers stay.",
        json(
            "a null last",
            lines("0.795", "1.6239999999999999", "2.184", "null"),
            (1, 0.795),
            (2, 1.6239999999999999),
            (3, 2.184),
            (4, None),
        ),
        json("a null first", lines("null", "0.795"), (1, None), (2, 0.795)),
        json("missing in the middle", lines("0.795", "", "2"), (1, 0.795), (2, None), (3, 2.0)),
    ),
    github(
        "pola-rs/polars",
        18244,
        "A declared type of items was forgotten if all lists were null.",
        "A later landing must still have it.",
        Landing(
            "numbers after nulls",
            "json",
            ({"a.json": lines("null")}, {"b.json": '{"n": 2, "x": [1, 2]}\n'}),
            rows=((1, None), (2, [1, 2])),
            source=typed("ARRAY<INT>"),
            warned=("column-all-null",),
        ),
        Landing(
            "texts after nulls",
            "json",
            ({"a.json": lines("null")}, {"b.json": '{"n": 2, "x": ["1"]}\n'}),
            rows=((1, None),),
            refused=no_value(1, "b.json"),
            source=typed("ARRAY<INT>"),
            warned=("column-all-null",),
        ),
    ),
    github(
        "pola-rs/polars",
        22807,
        "A hundred empty lists before the first item made the item an error, in one way of reading only.",
        "The file is read once, in one way; lists of different items are refused with both lines.",
        json(
            "numbers after a hundred empty lists",
            lines(*["[]"] * 100, "[1]"),
            *((n, []) for n in range(1, 101)),
            (101, [1]),
        ),
        json("numbers and texts", lines("[1]", '["a"]'), refused=refused("json-types-mixed", column="x")),
        json("whole numbers and fractions", lines("[1]", "[0.5]"), (1, [1.0]), (2, [0.5])),
    ),
    github(
        "pandas-dev/pandas",
        44684,
        'A text of digits became a rounded number: `"202101010000000003"` ended with 000.',
        "A text stays a text, and a number is exact.",
        json(
            "texts",
            lines('"202101010000000003"', '"202101010000000013"'),
            (1, "202101010000000003"),
            (2, "202101010000000013"),
        ),
        json(
            "numbers",
            lines("202101010000000003", "202101010000000013"),
            (1, 202101010000000003),
            (2, 202101010000000013),
        ),
        json("texts with zeros at the beginning", lines('"00010"', '"7"'), (1, "00010"), (2, "7")),
        json("texts like days", lines('"2021-01-01"', '"20210101"'), (1, "2021-01-01"), (2, "20210101")),
    ),
    github(
        "pandas-dev/pandas",
        14530,
        "10254939386542155531, which needs 64 bits without a sign, was an error.",
        "As DECIMAL it is exact; otherwise it is refused, never rounded.",
        json(
            "declared",
            lines("10254939386542155531"),
            (1, Decimal(10254939386542155531)),
            source=typed("DECIMAL(38,0)"),
        ),
        json("inferred", lines("10254939386542155531"), refused=no_value(1, "a.json")),
        json("as a DOUBLE", lines("10254939386542155531"), refused=no_value(1, "a.json"), source=typed("DOUBLE")),
    ),
    Report(
        "polars #21953",
        "https://github.com/pola-rs/polars/pull/21953",
        "Values of another type than the declared one became null.",
        "They are refused with line and field.",
        (
            json("a text for a number", lines("1", '"a"'), refused=no_value(2, "a.json"), source=typed("BIGINT")),
            json("an object for a text", lines('{"a": 1}'), refused=no_value(1, "a.json"), source=typed("STRING")),
            json(
                "an object for a list", lines('{"a": 1}'), refused=no_value(1, "a.json"), source=typed("ARRAY<BIGINT>")
            ),
            json(
                "a text within an object", lines('{"a": "1", "b": "x"}'), refused=no_value(1, "a.json"), source=STRUCT
            ),
            json(
                "the others if such rows are skipped",
                lines('"a"', "5"),
                (2, 5),
                source=typed("BIGINT"),
                log={"unreadable": "skip"},
                quarantined=1,
            ),
        ),
    ),
)
