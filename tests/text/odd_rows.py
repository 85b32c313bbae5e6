"""How a CSV file is divided: quotes, separators, line ends, headers, nulls and sizes."""

from tests.text.odd_case import Case, Refused, csv_no_value, csv_refused, csv_rows, csv_value

NX = "n BIGINT, x STRING"
ANYWHERE = "csv.reader takes a quote within an unquoted value for a character."
MULTIPLE = "csv.reader reads a quoted value over several lines without being told."
COUNT = "csv.reader does not count the values of a row."
AFTER = "csv.reader does not check the text after quotes, if quotes are not doubled."
RETURN = "csv.reader takes a carriage return alone for the end of a line."
ESCAPED = {"escape": "\\"}
LONG = 2 * 1024 * 1024
LIMIT = "csv.reader refuses fields of more than 131,072 characters, until field_size_limit is raised."
MANY = [f"c{number}" for number in range(2000)]


def row(name, text, *values, **more):
    """A row without a header: its values as text."""
    schema = ", ".join(f"c{position} STRING" for position in range(len(values)))
    more["options"] = {"header": False, **more.get("options", {})}
    return csv_rows(name, text, schema, values, **more)


def no_row(name, text, *, columns=2, line=1, **more):
    schema = ", ".join(f"c{position} STRING" for position in range(columns))
    more["options"] = {"header": False, **more.get("options", {})}
    return csv_refused(name, text, schema, line, **more)


QUOTES = (
    row("a doubled quote in quotes is a quote", '"a ""b"" c",1\n', 'a "b" c', "1"),
    row("four quotes are one quote", '"""",1\n', '"', "1"),
    row("six quotes are two quotes", '"""""",1\n', '""', "1"),
    row("all values may stand in quotes", '"a","b"\r\n', "a", "b"),
    row("a delimiter in quotes belongs to the value", '"a,b",c\n', "a,b", "c"),
    row("blanks in quotes belong to the value", '" a ",b\n', " a ", "b"),
    row("blanks around a value belong to it", " a , b\t\n", " a ", " b\t"),
    row("a quoted empty value is the empty text", '"",b\n', "", "b"),
    row("a value of no characters is null", ",b\n", None, "b"),
    row("the last value of a row may be null", "a,\n", "a", None),
    row("a backslash without the option is a character", '"a\\",b\\n\n', "a\\", "b\\n"),
    row("an apostrophe is a character", "'a,b'\n", "'a", "b'"),
    row("typographic quotes are characters", "\u201ca,b\u201d\n", "\u201ca", "b\u201d"),
    row(
        "a vertical tab, a form feed and other separators of lines are characters",
        "a\x0bb\x0cc\x1cd,\x85\u2028\u2029\n",
        "a\x0bb\x0cc\x1cd",
        "\x85\u2028\u2029",
    ),
    csv_value("a number may stand in quotes", "BIGINT", '"42"', 42),
    csv_value("a time may stand in quotes", "DATE", '"2026-01-05"', "2026-01-05"),
    csv_no_value("the empty text is no number", "BIGINT", '""'),
    csv_no_value("the empty text is no time", "TIMESTAMP", '""'),
    no_row("a quote within an unquoted value is refused", 'a"b,c\n', differs=ANYWHERE),
    no_row("doubled quotes in an unquoted value are refused", 'a""b,c\n', differs=ANYWHERE),
    no_row("a quote at the end of an unquoted value is refused", '5",c\n', differs=ANYWHERE),
    no_row("text after quotes is refused", '"a"b,c\n'),
    no_row("a second quoted part is refused", '"a""b" "c",d\n'),
    no_row("a blank before quotes is refused", 'a, "b"\n', differs=ANYWHERE),
    no_row("a tab before quotes is refused", 'a,\t"b"\n', differs=ANYWHERE),
    no_row("a blank after quotes is refused", '"a" ,b\n'),
    no_row("a blank after the last quotes is refused", 'a,"b" \n'),
    no_row("quotes without an end are refused", 'a,"b\n'),
    no_row("quotes without an end are refused at their line", 'a,b\nc,"d\ne,f\n', line=2),
    no_row("three quotes have no end", 'a,"""\n'),
    no_row("a quote alone is refused", '"\n', columns=1),
    no_row("a quoted end of a line is refused", 'a,"b\nc"\n', differs=MULTIPLE),
    no_row("a quoted CRLF is refused", 'a,"b\r\nc"\r\n', differs=MULTIPLE),
    no_row("a backslash does not escape without the option", 'a,"b\\"c"\n'),
    no_row(
        "a misplaced quote is refused with lines: multiple, too",
        'a"b,c\n',
        options={"lines": "multiple"},
        differs=ANYWHERE,
    ),
    row("lines: multiple has line ends in values", '"a\nb",c\n', "a\nb", "c", options={"lines": "multiple"}),
    row("lines: multiple keeps a CRLF in a value", '"a\r\nb",c\r\n', "a\r\nb", "c", options={"lines": "multiple"}),
    row("an empty line in a value belongs to it", '"a\n\nb",c\n', "a\n\nb", "c", options={"lines": "multiple"}),
    no_row(
        "quotes without an end are refused with lines: multiple, too",
        'a,b\nc,"d\ne,f\n',
        line=2,
        options={"lines": "multiple"},
    ),
    csv_refused(
        "a fault after a value of several lines is counted in lines",
        'n,x\n1,"a\nb"\nc,d\n',
        NX,
        4,
        "n",
        options={"lines": "multiple"},
    ),
    row("an escaped quote in quotes is a quote", '"a \\"b\\" c",1\n', 'a "b" c', "1", options=ESCAPED),
    row("an escaped escape is one", '"a\\\\",1\n', "a\\", "1", options=ESCAPED),
    row("a delimiter in quotes needs no escape", '"a,b\\"",1\n', 'a,b"', "1", options=ESCAPED),
    no_row("a doubled quote is refused beside an escape", '"a ""b"" c",1\n', options=ESCAPED, differs=AFTER),
    no_row("an escaped quote does not end a value", '"a\\",1\n', options=ESCAPED),
    row("another quote is taken", "'a,\"b'' ',\"\n", "a,\"b' ", '"', options={"quote": "'"}),
    no_row("another quote within a value is refused", "O'Hara,1\n", options={"quote": "'"}, differs=ANYWHERE),
    row("without quotes a quote is a character", '"a,b"c\n', '"a', 'b"c', options={"quote": ""}),
    row("without quotes two of them are no empty text", '"",b\n', '""', "b", options={"quote": ""}),
    no_row("without quotes a delimiter always divides", '"a,b",c\n', options={"quote": ""}, differs=COUNT),
)

LINES = (
    row("a tab divides values", "a,\tb c\n", "a,", "b c", options={"delimiter": "\t"}),
    row("a semicolon divides values", "a,b;c\n", "a,b", "c", options={"delimiter": ";"}),
    row("a bar divides values", "a|b\n", "a", "b", options={"delimiter": "|"}),
    row("a blank divides values", "a  b\n", "a", None, "b", options={"delimiter": " "}),
    row("a control character divides values", "a\x01b\n", "a", "b", options={"delimiter": "\x01"}),
    row("sep is accepted for delimiter", "a;b\n", "a", "b", options={"sep": ";"}),
    row("multiLine is accepted for lines", '"a\nb",c\n', "a\nb", "c", options={"multiLine": True}),
    csv_rows("CRLF ends lines", "n,x\r\n1,a\r\n2,b\r\n", NX, (1, "a"), (2, "b")),
    csv_rows("CRLF and LF may both end lines", "n,x\r\n1,a\n2,b\r\n3,c\n", NX, (1, "a"), (2, "b"), (3, "c")),
    csv_refused("a carriage return alone is refused", "n,x\n1,a\rb\n", NX, 2, differs=RETURN),
    csv_refused("a file of lines that end with CR is refused", "n,x\r1,a\r2,b\r", NX, 1, differs=RETURN),
    csv_refused("CR before CRLF is alone", "n,x\n1,a\r\r\n", NX, 2, differs=RETURN),
    csv_rows("empty lines are left out", "n,x\n\n1,a\n\r\n\n2,b\n\n", NX, (1, "a"), (2, "b")),
    csv_rows("an empty line is no null in a file of one column", "x\na\n\nb\n", "x STRING", ("a",), ("b",)),
    csv_rows(
        "quotes in a line are a value in a file of one column", 'x\na\n""\nb\n', "x STRING", ("a",), ("",), ("b",)
    ),
    csv_rows("a line of blanks is a value in a file of one column", "x\na\n  \n", "x STRING", ("a",), ("  ",)),
    csv_refused("a line of blanks has too few values", "n,x\n1,a\n  \n", NX, 3, differs=COUNT),
    csv_refused("empty lines are counted", "n,x\n\n\n1,a\n\nb,b\n", NX, 6, "n"),
    csv_refused("a row with too few values is refused", "n,x\n1,a\n2\n3,c\n", NX, 3, differs=COUNT),
    csv_refused("a row with too many values is refused", "n,x\n1,a\n2,b,c\n", NX, 3, differs=COUNT),
    csv_refused("a delimiter after the last value is one too many", "n,x\n1,a,\n", NX, 2, differs=COUNT),
    csv_refused("a comment is a row with too few values", "n,x\n# note\n1,a\n", NX, 2, differs=COUNT),
    csv_refused("a repeated header is a row with a bad value", "n,x\n1,a\nn,x\n", NX, 3, "n"),
    csv_refused("a half-written row is refused", "n,x\n1,a\n2", NX, 3, differs=COUNT),
    csv_refused("a half-written quoted value is refused", 'n,x\n1,a\n2,"b', NX, 3),
    csv_refused("a half-written time is refused", "n,x\n1,2026-01-05\n2,2026-01", "n BIGINT, x DATE", 3, "x"),
    csv_value("a value of 2 MB is landed", "STRING", "a" * LONG, "a" * LONG, differs=LIMIT),
    csv_value("a quoted value of 2 MB is landed", "STRING", '"' + '""' * LONG + '"', '"' * LONG, differs=LIMIT),
    csv_refused("an error after a line of 2 MB has its line", f"n,x\n1,{'a' * LONG}\nb,b\n", NX, 3, "n", differs=LIMIT),
    csv_rows(
        "two thousand columns are landed",
        ",".join(MANY) + "\n" + ",".join(str(number) for number in range(2000)) + "\n",
        ", ".join(f"{name} BIGINT" for name in MANY),
        tuple(range(2000)),
    ),
    csv_refused(
        "the last of two thousand columns is named",
        ",".join(MANY) + "\n" + ",".join(["1"] * 1999) + ",a\n",
        ", ".join(f"{name} BIGINT" for name in MANY),
        2,
        "c1999",
    ),
)


def headed(name, content, schema, *rows, **more):
    return csv_rows(name, content, schema, *rows, **more)


HEADERS = (
    headed("columns are found by name in any order", "x,n\na,1\n", NX, (1, "a")),
    headed("columns are found in capitals", "X,N\na,1\n", NX, (1, "a")),
    headed("a schema in capitals finds a header without", "n,x\n1,a\n", "N BIGINT, X STRING", (1, "a")),
    Case(
        "each file has its own order",
        "csv",
        {"x.csv": b"n,x\n1,a\n", "y.csv": b"x,n\nb,2\n"},
        NX,
        rows=({"n": 1, "x": "a"}, {"n": 2, "x": "b"}),
    ),
    headed("names may stand in quotes", '"n","x"\n1,a\n', NX, (1, "a")),
    headed("a quoted name may contain the delimiter", 'n,"x,y"\n1,a\n', "n BIGINT, `x,y` STRING", (1, "a")),
    headed(
        "a name in backticks may contain blanks and points",
        "n,Unit price. EUR\n1,2\n",
        "n BIGINT, `Unit price. EUR` BIGINT",
        (1, 2),
    ),
    headed("a name beyond ASCII stands in backticks", "n,größe\n1,2\n", "n BIGINT, `größe` BIGINT", (1, 2)),
    headed("a name in backticks may begin with a digit", "n,2026\n1,2\n", "n BIGINT, `2026` BIGINT", (1, 2)),
    headed(
        "a name that occurs twice is numbered from 0", "x,n,x\na,1,b\n", "x0 STRING, n BIGINT, x2 STRING", ("a", 1, "b")
    ),
    headed(
        "a name that occurs three times is numbered",
        "x,x,x\na,b,c\n",
        "x0 STRING, x1 STRING, x2 STRING",
        ("a", "b", "c"),
    ),
    headed(
        "a column without a name is numbered from 0", "n,,x\n1,a,b\n", "n BIGINT, _c1 STRING, x STRING", (1, "a", "b")
    ),
    headed("the last column may have no name", "n,\n1,a\n", "n BIGINT, _c1 STRING", (1, "a")),
    headed(
        "two columns without a name have different numbers",
        ",n,\na,1,b\n",
        "_c0 STRING, n BIGINT, _c2 STRING",
        ("a", 1, "b"),
    ),
    headed("a header alone has no rows", "n,x\n", NX),
    headed("without a header columns go by position", "1,a\n2,b\n", NX, (1, "a"), (2, "b"), options={"header": False}),
    csv_refused("a header is a bad value where none is expected", "n,x\n1,a\n", NX, 1, "n", options={"header": False}),
    csv_refused(
        "without a header a row must have the columns of the schema",
        "1,a,b\n",
        NX,
        1,
        options={"header": False},
        differs=COUNT,
    ),
    headed(
        "lines before the header are left out",
        "Report\nof today, 2026\nn,x\n1,a\n",
        NX,
        (1, "a"),
        options={"skip_rows": 2},
    ),
    csv_refused("lines before the header are counted", "Report\nn,x\nb,a\n", NX, 3, "n", options={"skip_rows": 1}),
    csv_refused("a title is no header", "Report\nn,x\n1,a\n", NX, None, differs=COUNT),
    csv_refused("a quote within a name is refused", 'n,x"y\n1,a\n', 'n BIGINT, `x"y` STRING', 1, differs=ANYWHERE),
    csv_refused("a blank before a quoted name is refused", 'n, "x"\n1,a\n', NX, 1, differs=ANYWHERE),
    csv_refused("a name without an end is refused", 'n,"x\n1,a\n', NX, 1),
    csv_refused("a value names the number of its repeated column", "x,x\n1,2\n3,b\n", "x0 BIGINT, x1 BIGINT", 3, "x1"),
    csv_refused("a value names the column in backticks", "n,a b\n1,c\n", "n BIGINT, `a b` BIGINT", 2, "a b"),
    Case(
        "the second file's fault has the second file's line",
        "csv",
        {"x.csv": b"n,x\n1,a\n", "y.csv": b"n,x\n\nb,b\n"},
        NX,
        refused=Refused("y.csv", 3, "n"),
    ),
)

NA = {"null": "NA"}
NULLS = (
    csv_value("a null is a null of each type", "TIMESTAMP", "", None),
    csv_value("a null DOUBLE is null", "DOUBLE", "", None),
    csv_value("null: is null, too", "BIGINT", "NA", None, options=NA),
    csv_value("no characters are null beside null:", "STRING", "", None, options=NA),
    csv_value("null: in quotes is text", "STRING", '"NA"', "NA", options=NA),
    csv_no_value("null: in quotes is no number", "BIGINT", '"NA"', options=NA),
    csv_value("null: is the whole value", "STRING", "NAN", "NAN", options=NA),
    csv_value("null: with a blank is text", "STRING", "NA ", "NA ", options=NA),
    csv_value("without null: NA is text", "STRING", "NA", "NA"),
    csv_no_value("without null: NULL is no number", "BIGINT", "NULL"),
    csv_value("without null: the text null is text", "STRING", "null", "null"),
    csv_value("null: may be a sign that is no number", "DOUBLE", "-", None, options={"null": "-"}),
    csv_value("null: comes before a number", "BIGINT", "-1", None, options={"null": "-1"}),
    csv_value("null: may contain a backslash", "STRING", "\\N", None, options={"null": "\\N"}),
    csv_value("nullValue is accepted for null", "BIGINT", "NA", None, options={"nullValue": "NA"}),
    csv_no_value("a blank is no null", "BIGINT", " "),
    csv_rows("a row of nulls is a row", "n,x\n,\n", NX, (None, None)),
)
