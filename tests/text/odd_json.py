"""Objects of JSON: their syntax, scalars and nested values."""

from decimal import Decimal

from tests.text.odd_case import (
    Case,
    Refused,
    json_no_syntax,
    json_no_value,
    json_refused,
    json_rows,
    json_value,
)

NX = "n BIGINT, x STRING"
MULTIPLE = {"lines": "multiple"}
REPEATED = "json.loads keeps the last of two fields of one name."
NUMBERS = "json.loads accepts NaN and Infinity."
HALF = "json.loads makes a surrogate of half a character."
LONG = 2 * 1024 * 1024

SCALARS = (
    json_value("a string is landed", "STRING", '"a b"', "a b"),
    json_value("blanks of a string belong to it", "STRING", '" a "', " a "),
    json_value("an empty string is the empty text", "STRING", '""', ""),
    json_value("null is null", "STRING", "null", None),
    json_value("the string null is text", "STRING", '"null"', "null"),
    json_rows("a missing field is null", '{"n": 1}\n{"x": "a"}\n{}\n', NX, (1, None), (None, "a"), (None, None)),
    json_rows("fields may be in any order", '{"x": "a", "n": 1}\n', NX, (1, "a")),
    json_rows("names are case-sensitive", '{"n": 1, "X": "a"}\n', NX, (1, None)),
    json_value("a string of a number is text", "STRING", '"007"', "007"),
    json_no_value("a number is no string", "STRING", "5"),
    json_no_value("a truth value is no string", "STRING", "true"),
    json_no_value("an object is no string", "STRING", '{"a": 1}'),
    json_no_value("a list is no string", "STRING", '["a"]'),
    json_value("a whole number is landed", "BIGINT", "-7", -7),
    json_value("a negative zero is 0 in a BIGINT", "BIGINT", "-0", 0),
    json_value("the largest BIGINT of JSON is landed", "BIGINT", "9223372036854775807", 9223372036854775807),
    json_value("2^53 and one is exact in JSON", "BIGINT", "9007199254740993", 9007199254740993),
    json_no_value("2^63 is no BIGINT of JSON", "BIGINT", "9223372036854775808"),
    json_no_value("thirty digits are no BIGINT of JSON", "BIGINT", "1" * 30),
    json_no_value("2^31 is no INT of JSON", "INT", "2147483648"),
    json_no_value("a point is no form of BIGINT in JSON", "BIGINT", "5.0"),
    json_no_value("an exponent is no form of BIGINT in JSON", "BIGINT", "1E5"),
    json_no_value("a string is no BIGINT", "BIGINT", '"5"'),
    json_no_value("an empty string is no BIGINT", "BIGINT", '""'),
    json_no_value("a truth value is no BIGINT", "BIGINT", "true"),
    json_no_value("a list of a number is no BIGINT", "BIGINT", "[5]"),
    json_value("a DOUBLE of JSON is landed", "DOUBLE", "-1.5", -1.5),
    json_value("a whole number is a DOUBLE of JSON", "DOUBLE", "42", 42.0),
    json_value("an exponent is a DOUBLE of JSON", "DOUBLE", "1E5", 100000.0),
    json_value("a negative exponent is a DOUBLE of JSON", "DOUBLE", "1e-3", 0.001),
    json_value("the second smallest double of JSON is landed", "DOUBLE", "1.0e-323", 1e-323),
    json_no_value("2^53 and one is no DOUBLE of JSON", "DOUBLE", "9007199254740993"),
    json_no_value("a number that overflows in JSON is refused", "DOUBLE", "1e400"),
    json_no_value("a string is no DOUBLE", "DOUBLE", '"1.5"'),
    json_no_value("the string NaN is no DOUBLE", "DOUBLE", '"NaN"'),
    json_value("a truth value of JSON is landed", "BOOLEAN", "false", False),
    json_no_value("the string true is no truth value", "BOOLEAN", '"true"'),
    json_no_value("1 is no truth value of JSON", "BOOLEAN", "1"),
    json_no_value("an object is no time", "TIMESTAMP", '{"$date": "2026-01-05T10:00:00Z"}'),
    json_value(
        "allowNonNumericNumbers accepts NaN", "DOUBLE", "NaN", float("nan"), options={"allowNonNumericNumbers": True}
    ),
    json_value(
        "allowNonNumericNumbers accepts Infinity",
        "DOUBLE",
        "Infinity",
        float("inf"),
        options={"allowNonNumericNumbers": True},
    ),
    json_value(
        "allowNonNumericNumbers accepts -Infinity",
        "DOUBLE",
        "-Infinity",
        float("-inf"),
        options={"allowNonNumericNumbers": True},
    ),
)

SYNTAX = (
    json_refused("a repeated field is refused", '{"n": 0}\n{"n": 1, "n": 2}\n', "n BIGINT", 2, differs=REPEATED),
    json_refused(
        "a repeated field of equal values is refused", '{"n": 1, "x": "a", "n": 1}\n', NX, 1, differs=REPEATED
    ),
    json_refused("a repeated field with null is refused", '{"n": null, "n": 1}\n', "n BIGINT", 1, differs=REPEATED),
    json_refused(
        "a field repeated by an escape is refused", '{"n": 1, "\\u006e": 2}\n', "n BIGINT", 1, differs=REPEATED
    ),
    json_refused(
        "a repeated field that is not declared is refused",
        '{"n": 1, "z": 1, "z": 2}\n',
        "n BIGINT",
        1,
        differs=REPEATED,
    ),
    json_no_syntax(
        "a repeated field of a struct is refused", "STRUCT<a: BIGINT>", '{"a": 1, "a": 1}', differs=REPEATED
    ),
    json_no_syntax("a repeated key of a map is refused", "MAP<STRING, BIGINT>", '{"a": 1, "a": 2}', differs=REPEATED),
    json_no_syntax(
        "a repeated field in a list is refused",
        "ARRAY<STRUCT<a: BIGINT>>",
        '[{"a": 1}, {"a": 1, "a": 2}]',
        differs=REPEATED,
    ),
    json_no_syntax("a repeated field in a JSON column is refused", "JSON", '{"b": {"a": 1, "a": 2}}', differs=REPEATED),
    json_refused("two objects in a line are refused", '{"n": 1}{"n": 2}\n', "n BIGINT", 1),
    json_refused("two objects with a blank between are refused", '{"n": 1} {"n": 2}\n', "n BIGINT", 1),
    json_refused("text after an object is refused", '{"n": 1} x\n', "n BIGINT", 1),
    json_refused("a comma after an object is refused", '{"n": 1},\n{"n": 2}\n', "n BIGINT", 1),
    json_refused("a bracket too many is refused", '{"n": 1}}\n', "n BIGINT", 1),
    json_refused("a comma too many in an object is refused", '{"n": 1,}\n', "n BIGINT", 1),
    json_refused("two commas are refused", '{"n": 1,, "x": "a"}\n', NX, 1),
    json_refused("a missing comma is refused", '{"n": 1 "x": "a"}\n', NX, 1),
    json_refused("a missing colon is refused", '{"n" 1}\n', "n BIGINT", 1),
    json_refused("a missing value is refused", '{"n": , "x": "a"}\n', NX, 1),
    json_no_syntax("a comma too many in a list is refused", "ARRAY<BIGINT>", "[1,]"),
    json_no_syntax("a missing element of a list is refused", "ARRAY<BIGINT>", "[1,,2]"),
    json_refused("a comment at the end of a line is refused", '{"n": 1} // one\n', "n BIGINT", 1),
    json_refused("a comment within an object is refused", '{"n": /* one */ 1}\n', "n BIGINT", 1),
    json_refused("a line of comment is refused", '# note\n{"n": 1}\n', "n BIGINT", 1),
    json_refused("single quotes are refused", "{'n': 1}\n", "n BIGINT", 1),
    json_refused("a name without quotes is refused", "{n: 1}\n", "n BIGINT", 1),
    json_no_syntax("a value without quotes is refused", "STRING", "abc"),
    json_no_syntax("NaN is refused", "DOUBLE", "NaN", differs=NUMBERS),
    json_no_syntax("Infinity is refused", "DOUBLE", "Infinity", differs=NUMBERS),
    json_no_syntax("-Infinity is refused", "DOUBLE", "-Infinity", differs=NUMBERS),
    json_refused(
        "NaN in a field that is not declared is refused", '{"n": 1, "z": NaN}\n', "n BIGINT", 1, differs=NUMBERS
    ),
    json_no_syntax("True of Python is refused", "BOOLEAN", "True"),
    json_no_syntax("None of Python is refused", "BOOLEAN", "None"),
    json_no_syntax("a leading zero is refused", "BIGINT", "01"),
    json_no_syntax("a negative number with a leading zero is refused", "BIGINT", "-01"),
    json_no_syntax("a plus sign is refused", "BIGINT", "+5"),
    json_no_syntax("a minus alone is refused in JSON", "BIGINT", "-"),
    json_no_syntax("a point without digits after it is refused in JSON", "DOUBLE", "1."),
    json_no_syntax("a point without digits before it is refused", "DOUBLE", ".5"),
    json_no_syntax("an exponent without digits is refused in JSON", "DOUBLE", "1e"),
    json_no_syntax("a hexadecimal number is refused in JSON", "BIGINT", "0x1F"),
    json_no_syntax("Arabic digits are refused in JSON", "BIGINT", "\u0661"),
    json_no_syntax("half a character is refused", "STRING", '"\\ud83d"', differs=HALF),
    json_no_syntax("the second half of a character alone is refused", "STRING", '"\\ude00"', differs=HALF),
    json_no_syntax("two halves in the wrong order are refused", "STRING", '"\\ude00\\ud83d"', differs=HALF),
    json_no_syntax("half a character in a JSON column is refused", "JSON", '{"a": "\\ud83d"}', differs=HALF),
    json_refused("half a character in a name is refused", '{"n": 1, "\\ud83d": 2}\n', "n BIGINT", 1, differs=HALF),
    json_value("two halves are a character", "STRING", '"\\ud83d\\ude00"', "\U0001f600"),
    json_value(
        "all escapes of JSON is landed", "STRING", '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u00E9"', '"\\/\b\f\n\r\téé'
    ),
    json_rows("a name may be written with an escape", '{"\\u006e": 1}\n', "n BIGINT", (1,)),
    json_no_syntax("an escape that JSON does not have is refused", "STRING", '"\\x41"'),
    json_no_syntax("an escaped apostrophe is refused", "STRING", '"\\\'"'),
    json_no_syntax("an escape of three digits is refused", "STRING", '"\\u0e9"'),
    json_no_syntax("a tab in a string is refused", "STRING", '"a\tb"'),
    json_no_syntax("a control character in a string is refused", "STRING", '"a\x01b"'),
    json_refused("a line end in a string is refused", '{"n": 1, "x": "a\nb"}\n', NX, 1),
    json_value("DEL in a string is a character", "STRING", '"a\x7fb"', "a\x7fb"),
    json_rows("blanks and tabs may stand around each part", ' \t{ "n" :\t1 , "x":"a" } \t\n', NX, (1, "a")),
    json_rows("lines of JSON may end with CRLF", '{"n": 1}\r\n{"n": 2}\r\n', "n BIGINT", (1,), (2,)),
    json_refused("a no-break space around an object is refused", '\xa0{"n": 1}\n', "n BIGINT", 1),
    json_refused("a form feed around an object is refused", '{"n": 1}\x0c\n', "n BIGINT", 1),
    json_refused("an object that is cut off is refused", '{"n": 1}\n{"n": 2', "n BIGINT", 2),
    json_refused("a string that is cut off is refused", '{"n": 1, "x": "a', NX, 1),
    json_refused(
        "a number in a line is no object", '{"n": 1}\n2\n', "n BIGINT", 2, differs="json.loads reads any value."
    ),
    json_refused("null in a line is no object", "null\n", "n BIGINT", 1, differs="json.loads reads any value."),
    json_refused("a string in a line is no object", '"a"\n', "n BIGINT", 1, differs="json.loads reads any value."),
    json_refused("a list in a line is no object", '[{"n": 1}]\n', "n BIGINT", 1, differs="json.loads reads any value."),
    json_refused("a list over several lines needs lines: multiple", '[\n{"n": 1}\n]\n', "n BIGINT", 1),
    json_refused("an object over several lines needs lines: multiple", '{\n"n": 1\n}\n', "n BIGINT", 1),
    json_refused("CSV is no JSON", "n,x\n1,a\n", NX, 1),
    json_rows("a string of 2 MB is landed", f'{{"n": 1, "x": "{"a" * LONG}"}}\n', NX, (1, "a" * LONG)),
    json_rows(
        "two thousand fields are landed",
        "{" + ", ".join(f'"c{number}": {number}' for number in range(2000)) + "}\n",
        ", ".join(f"c{number} BIGINT" for number in range(2000)),
        tuple(range(2000)),
    ),
)

SEVERAL = (
    json_rows("an object over several lines", '{\n  "n": 1,\n  "x": "a"\n}\n', NX, (1, "a"), options=MULTIPLE),
    json_rows("objects over several lines", '{\n"n": 1\n}\n{\n"n": 2\n}\n', "n BIGINT", (1,), (2,), options=MULTIPLE),
    json_rows(
        "lines: multiple reads an object in each line, too",
        '{"n": 1}\n{"n": 2}\n',
        "n BIGINT",
        (1,),
        (2,),
        options=MULTIPLE,
    ),
    json_rows("one list of objects", '[{"n": 1}, {"n": 2}]', "n BIGINT", (1,), (2,), options=MULTIPLE),
    json_rows(
        "one list over several lines",
        '[\n  {"n": 1},\n  {\n    "n": 2\n  }\n]\n',
        "n BIGINT",
        (1,),
        (2,),
        options=MULTIPLE,
    ),
    json_rows("an empty list has no rows", "[]\n", "n BIGINT", options=MULTIPLE),
    json_rows(
        "multiLine is accepted for lines of JSON", '[\n{"n": 1}\n]\n', "n BIGINT", (1,), options={"multiLine": True}
    ),
    json_refused("text after the list is refused", '[{"n": 1}] x\n', "n BIGINT", None, options=MULTIPLE),
    json_refused("an object after the list is refused", '[{"n": 1}]\n{"n": 2}\n', "n BIGINT", None, options=MULTIPLE),
    json_refused("a second list is refused", '[{"n": 1}]\n[{"n": 2}]\n', "n BIGINT", None, options=MULTIPLE),
    json_refused("a comma too many in the list is refused", '[{"n": 1},]\n', "n BIGINT", None, options=MULTIPLE),
    json_refused("a list without its end is refused", '[{"n": 1}, {"n": 2}\n', "n BIGINT", None, options=MULTIPLE),
    json_refused(
        "commas between objects without a list are refused", '{"n": 1},\n{"n": 2}\n', "n BIGINT", None, options=MULTIPLE
    ),
    json_refused("a number in the list is no object", '[{"n": 1}, 2]\n', "n BIGINT", None, options=MULTIPLE),
    json_refused("a list in the list is no object", '[[{"n": 1}]]\n', "n BIGINT", None, options=MULTIPLE),
    json_refused(
        "a repeated field over several lines is refused", '{\n"n": 1,\n"n": 2\n}\n', "n BIGINT", None, options=MULTIPLE
    ),
    json_refused(
        "an object over several lines that is cut off is refused",
        '{"n": 1}\n{\n"n": 2\n',
        "n BIGINT",
        None,
        options=MULTIPLE,
    ),
    json_refused(
        "a value of an object over several lines names its column",
        '{\n"n": "a"\n}\n',
        "n BIGINT",
        None,
        "n",
        options=MULTIPLE,
    ),
)

ORDER = "STRUCT<id: BIGINT, note: STRING>"
ITEMS = "ARRAY<STRUCT<sku: STRING, price: DECIMAL(9,2)>>"
DEEP = "[" * 100 + "]" * 100


def nested(name, kind, text, value, **more):
    return json_value(name, kind, text, value, **more)


NESTED = (
    nested("a struct is landed", ORDER, '{"id": 1, "note": "a"}', {"id": 1, "note": "a"}),
    nested("a struct's fields may be in any order", ORDER, '{"note": "a", "id": 1}', {"id": 1, "note": "a"}),
    nested("a missing field of a struct is null", ORDER, '{"id": 1}', {"id": 1, "note": None}),
    nested("a null field of a struct is null", ORDER, '{"id": null, "note": "a"}', {"id": None, "note": "a"}),
    nested("an empty object is a struct of nulls", ORDER, "{}", {"id": None, "note": None}),
    nested("a null struct is null", ORDER, "null", None),
    nested(
        "fields that are not declared are left out", ORDER, '{"id": 1, "note": "a", "z": [1]}', {"id": 1, "note": "a"}
    ),
    nested("names of a struct are case-sensitive", ORDER, '{"ID": 1, "note": "a"}', {"id": None, "note": "a"}),
    nested("a name in capitals is another name", ORDER, '{"id": 1, "ID": 2, "note": "a"}', {"id": 1, "note": "a"}),
    nested(
        "a struct in a struct is landed",
        f"STRUCT<o: {ORDER}>",
        '{"o": {"id": 1, "note": "a"}}',
        {"o": {"id": 1, "note": "a"}},
    ),
    nested(
        "a name of a struct in backticks is landed",
        "STRUCT<`unit price`: DOUBLE>",
        '{"unit price": 1.5}',
        {"unit price": 1.5},
    ),
    nested("a list is landed", "ARRAY<BIGINT>", "[3, 1, 2]", [3, 1, 2]),
    nested("a list may have nulls", "ARRAY<BIGINT>", "[1, null]", [1, None]),
    nested("an empty list is no null", "ARRAY<BIGINT>", "[]", []),
    nested("a null list is null", "ARRAY<BIGINT>", "null", None),
    nested("a list of lists is landed", "ARRAY<ARRAY<STRING>>", '[["a"], [], null]', [["a"], [], None]),
    nested(
        "a list of structs with exact decimals is landed",
        ITEMS,
        '[{"sku": "a", "price": 1.50}, {"price": 2}]',
        [{"sku": "a", "price": Decimal("1.50")}, {"sku": None, "price": Decimal(2)}],
    ),
    nested("a map is landed", "MAP<STRING, BIGINT>", '{"b": 1, "a b": 2, "": 3}', {"b": 1, "a b": 2, "": 3}),
    nested("a map may have nulls", "MAP<STRING, BIGINT>", '{"a": null}', {"a": None}),
    nested("an empty map is no null", "MAP<STRING, BIGINT>", "{}", {}),
    nested("keys of a map are case-sensitive", "MAP<STRING, BIGINT>", '{"a": 1, "A": 2}', {"a": 1, "A": 2}),
    nested("a map of structs is landed", f"MAP<STRING, {ORDER}>", '{"k": {"id": 1}}', {"k": {"id": 1, "note": None}}),
    nested("a map of lists is landed", "MAP<STRING, ARRAY<DOUBLE>>", '{"k": [1, 1.5]}', {"k": [1.0, 1.5]}),
    nested(
        "times and dates in a struct are landed",
        "STRUCT<t: TIMESTAMP, d: DATE>",
        '{"t": "2026-01-05T10:00:00+01:00", "d": "2026-01-05"}',
        {"t": "2026-01-05T09:00:00.000Z", "d": "2026-01-05"},
    ),
    nested(
        "a nested time alone is in the feed's zone",
        "ARRAY<TIMESTAMP>",
        '["2026-01-05T10:00"]',
        ["2026-01-05T09:00:00.000Z"],
        zone="Europe/Berlin",
        differs="json.loads converts no times.",
    ),
    nested("a nested BINARY is base64", "ARRAY<BINARY>", '["AP8="]', [b"\x00\xff"]),
    json_no_value("a string deep in a struct is no number", f"STRUCT<o: {ORDER}>", '{"o": {"id": "1"}}'),
    json_no_value("a number deep in a list is no string", "ARRAY<STRING>", '["a", 5]'),
    json_no_value("a fraction deep in a list is no BIGINT", "ARRAY<ARRAY<BIGINT>>", "[[1], [1.5]]"),
    json_no_value(
        "a third digit after the point deep in a list is refused", ITEMS, '[{"price": 1.50}, {"price": 1.505}]'
    ),
    json_no_value("a string in a map is no number", "MAP<STRING, BIGINT>", '{"a": 1, "b": "2"}'),
    json_no_value("a date deep in a struct has to exist", "STRUCT<d: DATE>", '{"d": "2026-02-30"}'),
    json_no_value("2^63 deep in a list is refused", "ARRAY<BIGINT>", "[9223372036854775808]"),
    json_no_value("a list is no struct", ORDER, '[{"id": 1}]'),
    json_no_value("a string is no struct", ORDER, '"a"'),
    json_no_value("an object in a string is no struct", ORDER, '"{\\"id\\": 1}"'),
    json_no_value("a scalar is no list", "ARRAY<BIGINT>", "5"),
    json_no_value("an object is no list", "ARRAY<BIGINT>", '{"0": 5}'),
    json_no_value("a list is no map", "MAP<STRING, BIGINT>", '[["a", 1]]'),
    json_no_value("an empty string is no struct", ORDER, '""'),
)

EXACT = (
    nested("a JSON column has the exact text", "JSON", '{"b":1.0,  "a" : [1, 2 ]}', '{"b":1.0,  "a" : [1, 2 ]}'),
    nested("a number in a JSON column has its text", "JSON", "1.50E+2", "1.50E+2"),
    nested("a big number in a JSON column has its text", "JSON", "1" * 50, "1" * 50),
    nested("a string in a JSON column has its quotes", "JSON", '"5"', '"5"'),
    nested("escapes in a JSON column stay", "JSON", '"\\u00e9\\/"', '"\\u00e9\\/"'),
    nested("a truth value in a JSON column has its text", "JSON", "true", "true"),
    nested("null in a JSON column is null", "JSON", "null", None),
    nested("null within a JSON column is text", "JSON", "[null]", "[null]"),
    nested("a hundred lists in a JSON column is landed", "JSON", DEEP, DEEP),
    nested("JSON in a list is landed", "ARRAY<JSON>", '[1, "a", {"b": [ ]}]', ["1", '"a"', '{"b": [ ]}']),
    json_rows(
        "several types in a JSON column",
        '{"x": 5}\n{"x": "5"}\n{"x": {"a": 5}}\n',
        "x JSON",
        ("5",),
        ('"5"',),
        ('{"a": 5}',),
    ),
    json_rows(
        "line ends in a JSON column over several lines are blanks",
        '{"x": {\n "a": 1\n}}\n',
        "x JSON",
        ('{  "a": 1 }',),
        options=MULTIPLE,
    ),
    json_no_syntax("a comma too many in a JSON column is refused", "JSON", "[1,]"),
    json_no_syntax("a list in a JSON column without its end", "JSON", "[1"),
)

FILES = (
    Case(
        "the second JSON file's fault has the second file's line",
        "json",
        {"x.json": b'{"n": 1}\n', "y.json": b'{"n": 2}\n{"n": "3"}\n'},
        "n BIGINT",
        refused=Refused("y.json", 2, "n"),
    ),
)
