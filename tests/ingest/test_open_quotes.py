"""Values in quotes that do not end in their line of a csv file, which Spark reads line by line."""

from __future__ import annotations

import pytest

from rewindow.errors import DataError
from tests.ingest.local_engine import log_rows
from tests.ingest.text_files import Files

pytestmark = pytest.mark.spark

OPEN = {
    "in the last column": 'ann,1,"call me\nback"\n',
    "in another column": 'ann,"1\n",x\n',
    "the rest looks like a row": 'ann,1,"call\nbob,2,me"\n',
    "after doubled quotes": 'ann,1,"""so"", he said\nbob,2,""again"""\n',
    "after a doubled quote at its end": 'ann,1,"so""\nbob,2,x\n',
    "after a closed value": '"ann","1","x\ny"\n',
    "with the ends of Windows": 'ann,1,"call\r\nme"\r\n',
}
CLOSED = {
    "quotes within values": ('ann,1,5" pipe\n', '5" pipe'),
    "doubled quotes": ('ann,1,"the ""best"" one, so far"\n', 'the "best" one, so far'),
    "nothing but a quote": ('ann,1,""""\n', '"'),
    "a separator before a quote": ('"ann",1,"a,""b"""\n', 'a,"b"'),
    "a very long value": (f'ann,1,"{"x" * 300_000}""y"\n', "x" * 300_000 + '"y'),
}


def feed_at(engine_at, tmp_path, text, **options):
    feed = Files(tmp_path, engine_at(tmp_path), "csv", options={"inferSchema": "true", **options})
    feed.write("d1.csv", text)
    return feed


@pytest.mark.parametrize("case", OPEN)
def test_a_value_that_does_not_end_in_its_line_is_refused(engine_at, tmp_path, case):
    feed = feed_at(engine_at, tmp_path, f"user,t,x\n{OPEN[case]}")
    with pytest.raises(
        DataError, match=r"d1\.csv, line 2: a value in quotes does not end in its line.*multiLine: true"
    ):
        feed.land(unreadable="skip")


def test_values_that_end_in_their_line_are_landed(engine_at, tmp_path):
    lines = (text.replace("1,", f"{at},", 1).replace('"1"', str(at)) for at, (text, _) in enumerate(CLOSED.values()))
    feed = feed_at(engine_at, tmp_path, '\ufeff"user",t,"x"\n' + "".join(lines))
    assert feed.land().rows == len(CLOSED)
    rows = sorted(log_rows(feed.tables), key=lambda row: row["timestamp"])
    assert [row["x"] for row in rows] == [value for _, value in CLOSED.values()]


@pytest.mark.parametrize(
    ("options", "text", "value"),
    [
        ({"multiLine": "true"}, 'user,t,x\nann,1,"call me\nback"\n', "call me\nback"),
        ({"quote": ""}, 'user,t,x\nann,1,"call\n', '"call'),
        ({"quote": "'"}, "user,t,x\nann,1,'it''s \"so'\n", "it's \"so"),
        ({"escape": "\\", "sep": ";"}, 'user;t;x\nann;1;"say \\"so\\";"\n', 'say "so";'),
        ({"comment": "#"}, 'user,t,x\n#,"an open one\nann,1,y\n', "y"),
    ],
)
def test_the_options_of_the_source_say_what_a_quote_means(engine_at, tmp_path, options, text, value):
    feed = feed_at(engine_at, tmp_path, text, **options)
    assert feed.land().rows == 1
    assert log_rows(feed.tables)[0]["x"] == value


@pytest.mark.parametrize(
    "options",
    [
        {"quote": "'"},
        {"escape": "\\"},
        {"sep": "|"},
        {"ignoreLeadingWhiteSpace": "true", "sep": ", "},
        {"encoding": "Cp1252"},
    ],
)
def test_open_values_are_found_with_such_options_too(engine_at, tmp_path, options):
    quote, sep = options.get("quote", '"'), options.get("sep", ",")
    feed = feed_at(engine_at, tmp_path, f"user{sep}t{sep}x\nann{sep}1{sep}{quote}call\nme{quote}\n", **options)
    with pytest.raises(DataError, match=r"d1\.csv, line 2: a value in quotes does not end in its line"):
        feed.land()
