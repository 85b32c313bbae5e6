"""Dates and times as the page has them, by its forms and by patterns, and their neighbours."""

from tests.text.odd_case import csv_no_value, csv_refused, csv_rows, csv_value, json_no_value, json_value, utc

DATES = (
    csv_value("a DATE is landed", "DATE", "2026-01-05", "2026-01-05"),
    csv_value("29 February of a leap year is landed", "DATE", "2024-02-29", "2024-02-29"),
    csv_value("29 February 2000 is landed", "DATE", "2000-02-29", "2000-02-29"),
    csv_value("the first day is landed", "DATE", "0001-01-01", "0001-01-01"),
    csv_value("the last day is landed", "DATE", "9999-12-31", "9999-12-31"),
    csv_value("a day that Julian and Gregorian calendars count differently", "DATE", "1582-10-10", "1582-10-10"),
    csv_no_value("29 February of another year is refused", "DATE", "2025-02-29"),
    csv_no_value("29 February 1900 is refused", "DATE", "1900-02-29"),
    csv_no_value("30 February is refused", "DATE", "2026-02-30"),
    csv_no_value("31 April is refused", "DATE", "2026-04-31"),
    csv_no_value("month 13 is refused", "DATE", "2026-13-01"),
    csv_no_value("month 0 is refused", "DATE", "2026-00-10"),
    csv_no_value("day 0 is refused", "DATE", "2026-01-00"),
    csv_no_value("the year 0 is refused", "DATE", "0000-01-01"),
    csv_no_value("the year 10000 is refused", "DATE", "10000-01-01"),
    csv_no_value("a negative year is refused", "DATE", "-2026-01-05"),
    csv_no_value("a year with a plus is refused", "DATE", "+2026-01-05"),
    csv_no_value("a month of one digit is refused", "DATE", "2026-1-05"),
    csv_no_value("a day of one digit is refused", "DATE", "2026-01-5"),
    csv_no_value("a year of two digits is refused", "DATE", "26-01-05"),
    csv_no_value("a date without signs between is refused", "DATE", "20260105"),
    csv_no_value("a date with slashes is refused", "DATE", "2026/01/05"),
    csv_no_value("a German date is refused", "DATE", "05.01.2026"),
    csv_no_value("a year and a month is refused", "DATE", "2026-01"),
    csv_no_value("a day of the year is refused", "DATE", "2026-005"),
    csv_no_value("a week is refused", "DATE", "2026-W01-1"),
    csv_no_value("a time for a DATE is refused", "DATE", "2026-01-05T00:00"),
    csv_no_value("a blank after a DATE is refused", "DATE", "2026-01-05 "),
    csv_no_value("Arabic digits in a DATE are refused", "DATE", "\u0662\u0660\u0662\u0666-01-05"),
    csv_no_value("hyphens that are not ASCII", "DATE", "2026\u201001\u201005"),
    json_value("a DATE in JSON is landed", "DATE", '"2026-01-05"', "2026-01-05"),
    json_no_value("a DATE in JSON that does not exist", "DATE", '"2026-02-30"'),
    json_no_value("a number is no DATE", "DATE", "20260105"),
)

TEN = utc("2026-01-05T10:00")
NINE = utc("2026-01-05T09:00")


def time(name, text, value, **more):
    return csv_value(name, "TIMESTAMP", text, value, **more)


def no_time(name, text, **more):
    return csv_no_value(name, "TIMESTAMP", text, **more)


TIMES = (
    time("a time with T and minutes is landed", "2026-01-05T10:00", TEN),
    time("a time with a blank and minutes is landed", "2026-01-05 10:00", TEN),
    time("a time with T and seconds is landed", "2026-01-05T10:00:07", TEN + 7000),
    time("a time with a blank and seconds is landed", "2026-01-05 10:00:00", TEN),
    time("a time with milliseconds is landed", "2026-01-05T10:00:00.123", TEN + 123),
    time("a time with microseconds is rounded down", "2026-01-05 10:00:00.123999", TEN + 123),
    time("a time with nanoseconds is rounded down", "2026-01-05T10:00:00.123999999", TEN + 123),
    time("the last nanosecond of a day stays in it", "2026-01-05T23:59:59.999999999", utc("2026-01-06T00:00") - 1),
    time("a fraction before 1970 is rounded down", "1969-12-31T23:59:59.999999999", -1),
    time("a nanosecond before 1970 in a whole millisecond is rounded down", "1969-12-31T23:59:59.998000001", -2),
    time("a date alone is the beginning of the day", "2026-01-05", utc("2026-01-05T00:00")),
    time("a date alone begins in the feed's zone", "2026-07-05", utc("2026-07-04T22:00"), zone="Europe/Berlin"),
    time(
        "a date alone begins in options' zone",
        "2026-01-05",
        utc("2026-01-05T05:00"),
        zone="UTC",
        options={"zone": "America/New_York"},
    ),
    time("Z is UTC in any zone", "2026-01-05T10:00:00Z", TEN, zone="Europe/Berlin"),
    time("Z may follow a blank", "2026-01-05T10:00:00 Z", TEN, zone="Europe/Berlin"),
    time("Z may follow minutes", "2026-01-05T10:00Z", TEN, zone="Europe/Berlin"),
    time("Z may follow a fraction", "2026-01-05T10:00:00.500Z", TEN + 500, zone="Europe/Berlin"),
    time("UTC follows a blank", "2026-01-05 10:00:00 UTC", TEN, zone="Europe/Berlin"),
    time("UTC follows a fraction and a blank", "2026-01-05 10:00:00.123456 UTC", TEN + 123, zone="Europe/Berlin"),
    time("an offset with a colon is landed", "2026-01-05T10:00:00+01:00", NINE),
    time("an offset without a colon is landed", "2026-01-05T10:00:00+0100", NINE),
    time("an offset of hours is landed", "2026-01-05T10:00:00+01", NINE),
    time("an offset after a blank is landed", "2026-01-05 10:00:00 +01:00", NINE),
    time("an offset of hours after a blank is landed", "2026-01-05 10:00:00.500 +01", NINE + 500),
    time("a negative offset is landed", "2026-01-05T10:00:00-05:00", utc("2026-01-05T15:00")),
    time("an offset of half an hour is landed", "2026-01-05T10:00:00+05:30", utc("2026-01-05T04:30")),
    time("an offset that passes midnight", "2026-01-01T00:30:00+01:00", utc("2025-12-31T23:30")),
    time("a time alone is in the feed's zone", "2026-01-05T10:00", NINE, zone="Europe/Berlin"),
    time("summer time counts in the feed's zone", "2026-07-05T10:00", utc("2026-07-05T08:00"), zone="Europe/Berlin"),
    time(
        "options' zone is before the feed's",
        "2026-01-05T10:00",
        NINE,
        zone="America/New_York",
        options={"zone": "Europe/Berlin"},
    ),
    time("timeZone is accepted for zone", "2026-01-05T10:00", NINE, options={"timeZone": "Europe/Berlin"}),
    time(
        "a time in a gap of its zone is an hour later",
        "2026-03-29T02:30",
        utc("2026-03-29T01:30"),
        zone="Europe/Berlin",
    ),
    time(
        "of two times in a double hour the earlier is taken",
        "2026-10-25 02:30:00",
        utc("2026-10-25T00:30"),
        zone="Europe/Berlin",
    ),
    time(
        "an offset tells the later of two times",
        "2026-10-25T02:30:00+01:00",
        utc("2026-10-25T01:30"),
        zone="Europe/Berlin",
    ),
    time("the end of a gap exists", "2026-03-29T03:00", utc("2026-03-29T01:00"), zone="Europe/Berlin"),
    time("the hour after a double hour is single", "2026-10-25T03:00", utc("2026-10-25T02:00"), zone="Europe/Berlin"),
    time(
        "a gap of New York is landed", "2026-03-08 02:30", utc("2026-03-08T07:30"), options={"zone": "America/New_York"}
    ),
    time("the first time is landed", "0001-01-01T00:00:00Z", utc("0001-01-01T00:00")),
    time("the last time is landed", "9999-12-31T23:59:59.999Z", utc("9999-12-31T23:59:59.999")),
    no_time("a small t is refused", "2026-01-05t10:00"),
    no_time("a small z is refused", "2026-01-05T10:00:00z"),
    no_time("utc in small letters is refused", "2026-01-05 10:00:00 utc"),
    no_time("GMT is refused", "2026-01-05 10:00:00 GMT"),
    no_time("a zone's name is refused", "2026-01-05T10:00:00 Europe/Berlin"),
    no_time("a zone's name in brackets is refused", "2026-01-05T10:00:00+01:00[Europe/Berlin]"),
    no_time("an offset of one digit is refused", "2026-01-05T10:00:00+1"),
    no_time("an offset of three digits is refused", "2026-01-05T10:00:00+100"),
    no_time("an offset without a sign is refused", "2026-01-05T10:00:00 01:00"),
    no_time("two offsets are refused", "2026-01-05T10:00:00Z+01:00"),
    no_time("an hour without minutes is refused", "2026-01-05T10"),
    no_time("an hour of one digit is refused", "2026-01-05 1:00"),
    no_time("a minute of one digit is refused", "2026-01-05 10:0"),
    no_time("a month of one digit in a time is refused", "2026-1-05T10:00"),
    no_time("a point without a fraction is refused", "2026-01-05T10:00:00."),
    no_time("a comma before the fraction is refused", '"2026-01-05T10:00:00,123"'),
    no_time("a fraction of a minute is refused", "2026-01-05T10:00.5"),
    no_time("two blanks between date and time are refused", "2026-01-05  10:00"),
    no_time("a blank at the end of a time", "2026-01-05T10:00 "),
    no_time("a blank before a time is refused", " 2026-01-05T10:00"),
    no_time("AM without a pattern is refused", "2026-01-05 10:00 AM"),
    no_time("a time without signs between is refused", "20260105T100000"),
    no_time("seconds since 1970 is refused", "1767607200"),
    no_time("a time of a day that does not exist", "2026-02-30T10:00"),
    no_time("a time in the year 0 is refused", "0000-01-01T00:00Z"),
    no_time("a time in the year 10000 is refused", "10000-01-01T00:00Z"),
    no_time("a time of the day alone is refused", "10:00:00"),
    no_time("Arabic digits in a time are refused", "2026-01-05T\u0661\u0660:00"),
    json_value("a time in JSON is landed", "TIMESTAMP", '"2026-01-05T10:00:00Z"', TEN),
    json_value(
        "a date alone in JSON is the beginning of the day", "TIMESTAMP", '"2026-01-05"', utc("2026-01-05T00:00")
    ),
    json_no_value("a number is no time", "TIMESTAMP", "1767607200000"),
    json_no_value("a small z in JSON is refused", "TIMESTAMP", '"2026-01-05T10:00:00z"'),
)


def pattern(name, format_, text, value, kind="TIMESTAMP", **more):
    return csv_value(name, kind, text, value, options={"time_format": format_}, **more)


def no_pattern(name, format_, text, kind="TIMESTAMP"):
    return csv_no_value(name, kind, text, options={"time_format": format_})


PATTERNS = (
    pattern("a German time is landed", "dd.MM.yyyy HH:mm:ss", "05.01.2026 10:00:07", TEN + 7000),
    pattern("a pattern is in the feed's zone", "dd.MM.yyyy HH:mm", "05.01.2026 10:00", NINE, zone="Europe/Berlin"),
    pattern("a pattern of hours alone is landed", "yyyy-MM-dd HH", "2026-01-05 10", TEN),
    pattern("a pattern without signs between is landed", "yyyyMMddHHmmss", "20260105100007", TEN + 7000),
    pattern("one letter stands for one digit", "M/d/yyyy H:mm", "1/5/2026 9:05", utc("2026-01-05T09:05")),
    pattern("one letter stands for two digits, too", "M/d/yyyy H:mm", "01/15/2026 19:05", utc("2026-01-15T19:05")),
    pattern("yy is of this century", "dd.MM.yy", "05.01.26", "2026-01-05", "DATE"),
    pattern("yy 99 is 2099", "dd.MM.yy", "05.01.99", "2099-01-05", "DATE"),
    pattern("yy 00 is 2000, a leap year", "dd.MM.yy", "29.02.00", "2000-02-29", "DATE"),
    pattern("an English month is landed", "dd-MMM-yyyy", "05-Jan-2026", "2026-01-05", "DATE"),
    pattern("another English month is landed", "d MMM yyyy", "5 Dec 2026", "2026-12-05", "DATE"),
    pattern("12 AM is midnight", "MM/dd/yyyy hh:mm a", "01/05/2026 12:30 AM", utc("2026-01-05T00:30")),
    pattern("12 PM is noon", "MM/dd/yyyy hh:mm a", "01/05/2026 12:30 PM", utc("2026-01-05T12:30")),
    pattern("1 PM is 13 o'clock", "M/d/yyyy h:mm:ss a", "1/5/2026 1:00:00 PM", utc("2026-01-05T13:00")),
    pattern("11 AM is 11 o'clock", "M/d/yyyy h:mm a", "1/5/2026 11:00 AM", utc("2026-01-05T11:00")),
    pattern("XXX is an offset", "yyyy-MM-dd'T'HH:mm:ssXXX", "2026-01-05T10:00:00+01:00", NINE),
    pattern("XXX is Z, too", "yyyy-MM-dd'T'HH:mm:ssXXX", "2026-01-05T10:00:00Z", TEN, zone="Europe/Berlin"),
    pattern("SSS is three digits", "yyyy-MM-dd HH:mm:ss.SSS", "2026-01-05 10:00:00.123", TEN + 123),
    pattern(
        "nine S are nine digits, rounded down",
        "yyyy-MM-dd HH:mm:ss.SSSSSSSSS",
        "2026-01-05 10:00:00.123999999",
        TEN + 123,
    ),
    pattern("letters in quotes stand for themselves", "yyyy-MM-dd 'at' HH:mm", "2026-01-05 at 10:00", TEN),
    pattern(
        "letters of parts in quotes stand for themselves", "'day' dd.MM.yyyy", "day 05.01.2026", "2026-01-05", "DATE"
    ),
    pattern("other signs stand for themselves", "yyyy_MM_dd (HH:mm)", "2026_01_05 (10:00)", TEN),
    pattern("signs of regular expressions stand for themselves", "yyyy.MM.dd+HH*mm", "2026.01.05+10*00", TEN),
    pattern(
        "a gap of a zone with a pattern is landed",
        "dd.MM.yyyy HH:mm",
        "29.03.2026 02:30",
        utc("2026-03-29T01:30"),
        zone="Europe/Berlin",
    ),
    pattern("a null with a pattern is null", "dd.MM.yyyy HH:mm", "", None),
    no_pattern("a pattern replaces the form with T", "dd.MM.yyyy HH:mm", "2026-01-05T10:00"),
    no_pattern("a pattern replaces the form of a date", "dd.MM.yyyy", "2026-01-05", "DATE"),
    no_pattern("a point of the pattern is no other sign", "dd.MM.yyyy", "05-01-2026", "DATE"),
    no_pattern("two letters are no single digit", "dd.MM.yyyy", "5.1.2026", "DATE"),
    no_pattern("yyyy is not two digits", "dd.MM.yyyy", "05.01.26", "DATE"),
    no_pattern("yy is not four digits", "dd.MM.yy", "05.01.2026", "DATE"),
    no_pattern("one letter is not three digits", "d.M.yyyy", "005.1.2026", "DATE"),
    no_pattern("a pattern's day has to exist", "dd.MM.yyyy", "30.02.2026", "DATE"),
    no_pattern("a pattern's month has to exist", "dd.MM.yyyy", "01.13.2026", "DATE"),
    no_pattern("a pattern's year is not 0", "dd.MM.yyyy", "01.01.0000", "DATE"),
    no_pattern("HH is not 24", "dd.MM.yyyy HH:mm", "05.01.2026 24:00"),
    no_pattern("hh is not 0", "dd.MM.yyyy hh:mm a", "05.01.2026 00:30 AM"),
    no_pattern("hh is not 13", "dd.MM.yyyy hh:mm a", "05.01.2026 13:30 PM"),
    no_pattern("a is not left out", "dd.MM.yyyy hh:mm a", "05.01.2026 10:30"),
    no_pattern("MMM is no German month", "dd. MMM yyyy", "05. Mai 2026", "DATE"),
    no_pattern("MMM is no long month", "d MMM yyyy", "5 January 2026", "DATE"),
    no_pattern("MMM is no number", "d MMM yyyy", "5 1 2026", "DATE"),
    no_pattern("text after a pattern is refused", "dd.MM.yyyy HH:mm", "05.01.2026 10:00:00"),
    no_pattern("a blank after a pattern is refused", "dd.MM.yyyy", "05.01.2026 ", "DATE"),
    no_pattern("less than a pattern is refused", "dd.MM.yyyy HH:mm", "05.01.2026"),
    no_pattern("XXX has a colon", "yyyy-MM-dd HH:mmXXX", "2026-01-05 10:00+0100"),
    no_pattern("XXX is not left out", "yyyy-MM-dd HH:mmXXX", "2026-01-05 10:00"),
    no_pattern("an offset without XXX is refused", "yyyy-MM-dd HH:mm", "2026-01-05 10:00Z"),
    no_pattern("no zone is a day away", "yyyy-MM-dd HH:mmXXX", "2026-01-05 10:00+24:00"),
    no_pattern("SSS is not six digits", "yyyy-MM-dd HH:mm:ss.SSS", "2026-01-05 10:00:00.123456"),
    no_pattern("letters in quotes are not left out", "yyyy-MM-dd'T'HH:mm", "2026-01-05 10:00"),
    no_pattern("Arabic digits in a pattern are refused", "dd.MM.yyyy", "\u0660\u0665.01.2026", "DATE"),
    csv_rows(
        "a map has a pattern for a column",
        "x,y,z\n05.01.2026,01/05/2026 10:00,2026-01-05T10:00\n",
        "x DATE, y TIMESTAMP, z TIMESTAMP",
        ("2026-01-05", TEN, TEN),
        options={"time_format": {"x": "dd.MM.yyyy", "y": "MM/dd/yyyy HH:mm"}},
    ),
    csv_refused(
        "a pattern of a map has no fallback",
        "x,y\n05.01.2026,05.01.2026\n2026-01-05,05.01.2026\n",
        "x DATE, y DATE",
        3,
        "x",
        options={"time_format": {"x": "dd.MM.yyyy", "y": "dd.MM.yyyy"}},
    ),
    csv_value(
        "timestampFormat is accepted for time_format",
        "TIMESTAMP",
        "05.01.2026 10:00",
        TEN,
        options={"timestampFormat": "dd.MM.yyyy HH:mm"},
    ),
    csv_value(
        "dateFormat is accepted for time_format",
        "DATE",
        "05.01.2026",
        "2026-01-05",
        options={"dateFormat": "dd.MM.yyyy"},
    ),
    json_value(
        "a pattern is for JSON, too", "DATE", '"05.01.2026"', "2026-01-05", options={"time_format": "dd.MM.yyyy"}
    ),
    json_no_value(
        "a pattern replaces the forms of JSON", "DATE", '"2026-01-05"', options={"time_format": "dd.MM.yyyy"}
    ),
)
