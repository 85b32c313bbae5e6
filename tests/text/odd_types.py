"""Types that are inferred from all values, and options that are refused."""

from tests.text.odd_case import Case, Refused, inferred, not_configured, utc


def column(name, kind, texts, values, **more):
    """A CSV column of `texts` beside one of whole numbers."""
    content = "n,x\n" + "".join(f"{number},{text}\n" for number, text in enumerate(texts))
    return inferred(f"{name}: x is {kind}", content, {"n": "BIGINT", "x": kind}, *enumerate(values), **more)


def texts(name, *values, **more):
    """A CSV column that stays text."""
    return column(name, "STRING", values, [value or None for value in values], **more)


def field(name, kind, texts_, values, **more):
    """A JSON field x of all `texts_`."""
    content = "".join(f'{{"n": {number}, "x": {text}}}\n' for number, text in enumerate(texts_))
    return inferred(
        f"{name}: x is {kind}", content, {"n": "BIGINT", "x": kind}, *enumerate(values), form="json", **more
    )


def mixed(name, *texts_):
    content = "".join(f'{{"x": {text}}}\n' for text in texts_)
    return Case(name, "json", {"x.json": content.encode()}, refused=Refused("x.json", None, "x"))


CSV = (
    column("whole numbers", "BIGINT", ["42", "-7", "0"], [42, -7, 0]),
    texts("a number with a zero at its beginning", "42", "007"),
    texts("a fraction with zeros at its beginning", "1.5", "00.5"),
    column("whole numbers beyond 2^53", "BIGINT", ["9007199254740993"], [9007199254740993]),
    column("ones and zeros are whole numbers", "BIGINT", ["1", "0"], [1, 0]),
    column("nulls do not count", "BIGINT", ["1", "", "2"], [1, None, 2]),
    column("quotes do not count", "BIGINT", ['"1"', "2"], [1, 2]),
    column("null: does not count", "BIGINT", ["1", "NA"], [1, None], options={"null": "NA"}),
    column("whole numbers and fractions", "DOUBLE", ["1", "1.5", ".5"], [1.0, 1.5, 0.5]),
    column("fractions of zeros", "DOUBLE", ["1.0", "2.0"], [1.0, 2.0]),
    column("an exponent with a point", "DOUBLE", ["1.5e3", "2"], [1500.0, 2.0]),
    column("a negative exponent", "DOUBLE", ["1e-3", "2"], [0.001, 2.0]),
    column("a fraction of a column with decimal:", "DOUBLE", ['"1,5"', "2"], [1.5, 2.0], options={"decimal": ","}),
    column("groups of a column with thousands:", "BIGINT", ['"1,234"', "567"], [1234, 567], options={"thousands": ","}),
    column("truth values", "BOOLEAN", ["true", "FALSE", ""], [True, False, None]),
    column("dates", "DATE", ["2026-01-05", ""], ["2026-01-05", None]),
    column("times", "TIMESTAMP", ["2026-01-05T10:00", "2026-01-05 10:00:00Z"], [utc("2026-01-05T10:00")] * 2),
    column(
        "dates beside times are times",
        "TIMESTAMP",
        ["2026-01-05", "2026-01-05T10:00"],
        [utc("2026-01-05T00:00"), utc("2026-01-05T10:00")],
    ),
    column("dates by a pattern", "DATE", ["05.01.2026"], ["2026-01-05"], options={"time_format": "dd.MM.yyyy"}),
    column(
        "times by a pattern",
        "TIMESTAMP",
        ["05.01.2026 10:00"],
        [utc("2026-01-05T10:00")],
        options={"time_format": "dd.MM.yyyy HH:mm"},
    ),
    texts("an exponent without a point beside a whole number", "1E5", "100000"),
    texts("an exponent without a point alone", "1E5", "2E6"),
    texts("a positive exponent without a point beside fractions", "1e+5", "1.5"),
    texts("exponents of both kinds", "1.5e3", "1e3"),
    texts("fractions beside 2^53 and one", "1.5", "9007199254740993"),
    texts("whole numbers beyond 64 bits", "1", "9223372036854775808"),
    texts("a number that overflows makes text", "1.5", "1.5e400"),
    texts("a plus sign makes text", "1", "+5"),
    texts("a point without a fraction makes text", "1.5", "5."),
    texts("a blank makes text", "1", " 2"),
    texts("a line of blanks makes text", "1", " "),
    texts("one odd value makes text", *["1"] * 200, "n/a"),
    texts("the last of many values makes text", *["1.5"] * 3000, "-"),
    texts("truth values beside numbers", "true", "1"),
    texts("a truth value beside another word", "true", "no"),
    texts("a day that does not exist makes text", "2026-01-05", "2026-02-30"),
    texts("dates beside numbers", "2026-01-05", "20260105"),
    texts("a small z makes text", "2026-01-05T10:00Z", "2026-01-05T10:00z"),
    texts("a German date without a pattern", "05.01.2026"),
    texts("an ISO date beside a pattern", "05.01.2026", "2026-01-05", options={"time_format": "dd.MM.yyyy"}),
    column("fractions with a comma without decimal: are text", "STRING", ['"1,5"', "2"], ["1,5", "2"]),
    texts("Arabic digits are text", "\u0661", "\u0662"),
    texts("Infinity without the option is text", "1.5", "Infinity"),
    texts("no values", "", ""),
    column("the empty text makes text", "STRING", ["1", '""'], ["1", ""]),
    inferred("infer: false keeps zeros", "x\n007\n", {"x": "STRING"}, ("007",), options={"infer": False}),
    inferred("a header alone makes text", "x,y\n", {"x": "STRING", "y": "STRING"}),
    inferred(
        "infer: false is for all columns",
        "n,x\n1,2.5\n",
        {"n": "STRING", "x": "STRING"},
        ("1", "2.5"),
        options={"infer": False},
    ),
    inferred(
        "inferSchema: false is accepted",
        "n,x\n1,true\n",
        {"n": "STRING", "x": "STRING"},
        ("1", "true"),
        options={"inferSchema": False},
    ),
    inferred(
        "without a header columns have numbers",
        "1,a\n2,b\n",
        {"_c0": "BIGINT", "_c1": "STRING"},
        (1, "a"),
        (2, "b"),
        options={"header": False},
    ),
    inferred(
        "repeated and missing names",
        "x,,x\n1,a,2.5\n",
        {"x0": "BIGINT", "_c1": "STRING", "x2": "DOUBLE"},
        (1, "a", 2.5),
    ),
    Case(
        "all files of the first landing count",
        "csv",
        {"x.csv": b"n,x\n1,1\n", "y.csv": b"x,n\n1.5,2\n"},
        types={"n": "BIGINT", "x": "DOUBLE"},
        rows=({"n": 1, "x": 1.0}, {"n": 2, "x": 1.5}),
    ),
)

JSON = (
    field("whole numbers of JSON", "BIGINT", ["1", "-7", "null"], [1, -7, None]),
    field("whole numbers and fractions of JSON", "DOUBLE", ["1", "1.5"], [1.0, 1.5]),
    field("a point makes a DOUBLE of JSON", "DOUBLE", ["1", "2.0"], [1.0, 2.0]),
    field("an exponent makes a DOUBLE of JSON", "DOUBLE", ["1E5", "100000"], [100000.0, 100000.0]),
    field("truth values of JSON", "BOOLEAN", ["true", "false"], [True, False]),
    field("a string of a number stays text", "STRING", ['"5"', '"7"'], ["5", "7"]),
    field("a string of a time stays text", "STRING", ['"2026-01-05T10:00:00Z"'], ["2026-01-05T10:00:00Z"]),
    field("a list of whole numbers and fractions", "ARRAY<DOUBLE>", ["[1]", "[1.5, null]"], [[1.0], [1.5, None]]),
    field(
        "objects get the types of all their fields",
        "STRUCT<a: BIGINT, b: STRING>",
        ['{"a": 1}', '{"b": "c"}'],
        [{"a": 1, "b": None}, {"a": None, "b": "c"}],
    ),
    field(
        "fields of objects are numbers and fractions",
        "STRUCT<a: DOUBLE>",
        ['{"a": 1}', '{"a": 1.5}'],
        [{"a": 1.0}, {"a": 1.5}],
    ),
    field(
        "objects in lists get the types of all their fields",
        "ARRAY<STRUCT<a: BIGINT, b: BOOLEAN>>",
        ['[{"a": 1}, {"b": true}]'],
        [[{"a": 1, "b": None}, {"a": None, "b": True}]],
    ),
    inferred(
        "a field of a later line is a column",
        '{"a": 1}\n{"a": 2, "b": "c"}\n',
        {"a": "BIGINT", "b": "STRING"},
        (1, None),
        (2, "c"),
        form="json",
    ),
    mixed("a number and a string are refused", "5", '"5"'),
    mixed("a string and a number many lines later are refused", *['"5"'] * 500, "5"),
    mixed("a truth value and a number are refused", "true", "1"),
    mixed("an object and a string are refused", '{"a": 1}', '"a"'),
    mixed("an object and a list are refused", '{"a": 1}', '[{"a": 1}]'),
    mixed("a list and its element are refused", "[1]", "1"),
    mixed("a number and a string in one list are refused", '[1, "1"]'),
    mixed("a number and a string in fields of objects are refused", '{"a": 1}', '{"a": "1"}'),
)

OPTIONS = (
    *(
        not_configured(f"{name} is refused by name", **{name: value})
        for name, value in (
            ("mode", "PERMISSIVE"),
            ("comment", "#"),
            ("lineSep", "\n"),
            ("samplingRatio", 0.5),
            ("ignoreLeadingWhiteSpace", True),
            ("emptyValue", ""),
            ("columnNameOfCorruptRecord", "_bad"),
            ("maxColumns", 10),
            ("headers", True),
        )
    ),
    not_configured("allowComments of JSON is refused by name", form="json", allowComments=True),
    not_configured("primitivesAsString of JSON is refused by name", form="json", primitivesAsString=True),
    not_configured("a delimiter of two characters is refused", delimiter="||"),
    not_configured("a delimiter of no characters is refused", delimiter=""),
    not_configured("a delimiter that is not ASCII", delimiter="\xa7"),
    not_configured("a quote of two characters is refused", quote="''"),
    not_configured("a quote that is not ASCII", quote="\u201c"),
    not_configured("an escape of two characters is refused", escape="\\\\"),
    not_configured("an encoding that Python does not know", encoding="klingon"),
    not_configured("a fraction that begins with a semicolon", decimal=";"),
    not_configured("groups by an underscore", thousands="_"),
    not_configured("lines of another number are refused", lines="many"),
    not_configured("a locale that is not listed", locale="ja-JP"),
    *(
        not_configured(f"a pattern {fault} is refused", schema="n BIGINT, x TIMESTAMP", time_format=pattern)
        for fault, pattern in (
            ("with minutes for months", "yyyy-mm-dd"),
            ("without a day", "yyyy-MM"),
            ("without a year", "dd.MM. HH:mm"),
            ("without a date", "HH:mm:ss"),
            ("with a year twice", "yyyy-MM-dd yy"),
            ("with a month twice", "yyyy-MM-dd MMM"),
            ("with hours twice", "yyyy-MM-dd HH:mm H"),
            ("with seconds and no minutes", "yyyy-MM-dd HH:ss"),
            ("with minutes and no hours", "yyyy-MM-dd mm"),
            ("with a fraction and no seconds", "yyyy-MM-dd HH:mm.SSS"),
            ("with hours to 12 and no AM", "yyyy-MM-dd hh:mm"),
            ("with the day of the year", "yyyy-MM-DD HH:mm"),
            ("with the year of the week", "YYYY-MM-dd HH:mm"),
            ("with u for years", "uuuu-MM-dd HH:mm"),
            ("with a weekday", "EEE, dd MMM yyyy HH:mm"),
            ("with a zone's name", "yyyy-MM-dd HH:mm z"),
            ("with three y", "yyy-MM-dd HH:mm"),
            ("with a long month", "dd MMMM yyyy HH:mm"),
            ("with one m", "yyyy-MM-dd HH:m"),
            ("with ten S", "yyyy-MM-dd HH:mm:ss.SSSSSSSSSS"),
            ("with an offset of Z", "yyyy-MM-dd HH:mmZ"),
            ("with T that is not in quotes", "yyyy-MM-ddTHH:mm"),
            ("of strftime", "%Y-%m-%d %H:%M"),
            ("of no letters", ""),
        )
    ),
    not_configured(
        "a bad pattern in a map is refused", schema="n BIGINT, x TIMESTAMP", time_format={"x": "yyyy-mm-dd"}
    ),
)
