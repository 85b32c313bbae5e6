"""Numbers, truth values, dates and times as the page has them, and their neighbours."""

from decimal import Decimal
from math import inf, nan

from tests.text.odd_case import csv_no_value, csv_refused, csv_rows, csv_value, json_no_value, json_value, utc


def limits(kind, bits):
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return (
        csv_value(f"the smallest {kind} is landed", kind, str(low), low),
        csv_value(f"the largest {kind} is landed", kind, str(high), high),
        csv_no_value(f"one less than the smallest {kind} is refused", kind, str(low - 1)),
        csv_no_value(f"one more than the largest {kind} is refused", kind, str(high + 1)),
    )


WHOLE = (
    *limits("BIGINT", 64),
    *limits("INT", 32),
    *limits("SMALLINT", 16),
    *limits("TINYINT", 8),
    csv_value("leading zeros are accepted in a BIGINT", "BIGINT", "007", 7),
    csv_value("2^53 and one is exact in a BIGINT", "BIGINT", "9007199254740993", 9007199254740993),
    csv_no_value("a plus sign is no form of BIGINT", "BIGINT", "+5"),
    csv_no_value("a blank before a number is refused", "BIGINT", " 5"),
    csv_no_value("a blank after a number is refused", "BIGINT", "5 "),
    csv_no_value("a blank in quotes before a number is refused", "BIGINT", '" 5"'),
    csv_no_value("a no-break space before a number is refused", "BIGINT", "\xa05"),
    csv_no_value("a blank after a minus is refused", "BIGINT", "- 5"),
    csv_no_value("a minus alone is refused", "BIGINT", "-"),
    csv_no_value("two minuses are refused", "BIGINT", "--5"),
    csv_no_value("a minus behind the number is refused", "BIGINT", "5-"),
    csv_no_value("a minus that is not ASCII", "BIGINT", "\u22125"),
    csv_no_value("an en dash for a minus is refused", "BIGINT", "\u20135"),
    csv_no_value("brackets for a minus are refused", "BIGINT", "(5)"),
    csv_no_value("a point without a fraction in a BIGINT is refused", "BIGINT", "5.0"),
    csv_no_value("a fraction in a BIGINT is refused", "BIGINT", "1.5"),
    csv_no_value("an exponent in a BIGINT is refused", "BIGINT", "1e3"),
    csv_no_value("a hexadecimal number is refused", "BIGINT", "0x1F"),
    csv_no_value("an underscore between digits is refused", "BIGINT", "1_000"),
    csv_no_value("a suffix of Java's long numbers is refused", "BIGINT", "5L"),
    csv_no_value("Arabic digits are refused", "BIGINT", "\u0661\u0662"),
    csv_no_value("full-width digits are refused", "BIGINT", "\uff15"),
    csv_no_value("a superscript digit is refused", "BIGINT", "5\xb2"),
    csv_no_value("a truth value in a BIGINT is refused", "BIGINT", "true"),
    csv_no_value("groups without the option", "BIGINT", '"1,000"'),
    csv_no_value("a number and text is refused", "BIGINT", "5 kg"),
)

DOUBLES = (
    csv_value("a DOUBLE may be whole", "DOUBLE", "42", 42.0),
    csv_value("a DOUBLE with a point is landed", "DOUBLE", "-1.5", -1.5),
    csv_value("a DOUBLE may begin with a point", "DOUBLE", ".5", 0.5),
    csv_value("a DOUBLE may have a negative exponent", "DOUBLE", "1e-3", 0.001),
    csv_value("a DOUBLE may have a capital E and a plus", "DOUBLE", "2.5E+10", 2.5e10),
    csv_value("a declared DOUBLE may have an exponent without a point", "DOUBLE", "1E5", 100000.0),
    csv_value("NaN is a DOUBLE", "DOUBLE", "NaN", nan),
    csv_value("2^53 is a DOUBLE", "DOUBLE", "9007199254740992", 9007199254740992.0),
    csv_value("-2^53 is a DOUBLE", "DOUBLE", "-9007199254740992", -9007199254740992.0),
    csv_no_value("2^53 and one is no DOUBLE", "DOUBLE", "9007199254740993"),
    csv_no_value("2^53 and two is no DOUBLE, though it is exact", "DOUBLE", "9007199254740994"),
    csv_no_value("-2^53 less one is no DOUBLE", "DOUBLE", "-9007199254740993"),
    csv_value("a fraction beyond 2^53 is rounded", "DOUBLE", "9007199254740993.5", 9007199254740994.0),
    csv_value("a fraction is rounded to the nearest double", "DOUBLE", "0.1", 0.1),
    csv_value("thirty digits after the point are rounded", "DOUBLE", "0.333333333333333333333333333333", 1 / 3),
    csv_value("a little less than half way is rounded down", "DOUBLE", "1.00000000000000011102230246251565404", 1.0),
    csv_value(
        "a little more than half way is rounded up",
        "DOUBLE",
        "1.00000000000000011102230246251565405",
        1.0000000000000002,
    ),
    csv_value("the largest double is landed", "DOUBLE", "1.7976931348623157e308", 1.7976931348623157e308),
    csv_value("the smallest double is landed", "DOUBLE", "4.9e-324", 5e-324),
    csv_value("an amount below all doubles is rounded to zero", "DOUBLE", "1.5e-400", 0.0),
    csv_no_value("a number that overflows is refused", "DOUBLE", "1e400"),
    csv_no_value("a negative number that overflows is refused", "DOUBLE", "-1.5e400"),
    csv_no_value("a number that is rounded beyond the largest double", "DOUBLE", "1.7976931348623159e308"),
    csv_value("a negative zero keeps its sign", "DOUBLE", "-0.0", -0.0),
    csv_no_value("a point without digits after it is refused", "DOUBLE", "5."),
    csv_no_value("a point alone is refused", "DOUBLE", "."),
    csv_no_value("a plus sign is no form of DOUBLE", "DOUBLE", "+1.5"),
    csv_no_value("an exponent without digits is refused", "DOUBLE", "1e"),
    csv_no_value("an exponent with a fraction is refused", "DOUBLE", "1e1.5"),
    csv_no_value("an exponent alone is refused", "DOUBLE", "e5"),
    csv_no_value("two points are refused", "DOUBLE", "1.2.3"),
    csv_no_value("a comma for the point is refused", "DOUBLE", '"1,5"'),
    csv_no_value("a suffix of Java's doubles is refused", "DOUBLE", "7D"),
    csv_no_value("a suffix of Java's floats is refused", "DOUBLE", "7f"),
    csv_no_value("a hexadecimal double is refused", "DOUBLE", "0x1p3"),
    csv_no_value("nan in small letters is refused", "DOUBLE", "nan"),
    csv_no_value("a negative NaN is refused", "DOUBLE", "-NaN"),
    csv_no_value("Infinity without the option is refused", "DOUBLE", "Infinity"),
    csv_no_value("inf without the option is refused", "DOUBLE", "inf"),
    csv_no_value("a percent sign is refused", "DOUBLE", "5%"),
    csv_no_value("a currency sign is refused", "DOUBLE", "$5"),
    csv_no_value("a blank around a DOUBLE is refused", "DOUBLE", " 1.5"),
    csv_no_value("Arabic digits in a DOUBLE are refused", "DOUBLE", "\u0661.5"),
    csv_value("a FLOAT is a DOUBLE's form", "FLOAT", "-1.5", -1.5),
    csv_value("positiveInf is accepted", "DOUBLE", "inf", inf, options={"positiveInf": "inf"}),
    csv_value("negativeInf is accepted", "DOUBLE", "-inf", -inf, options={"negativeInf": "-inf"}),
    csv_value("nanValue is accepted", "DOUBLE", "n/a", nan, options={"nanValue": "n/a"}),
)

COMMA = {"delimiter": ";", "decimal": ","}
EUROPE = {**COMMA, "thousands": "."}


def local(name, kind, text, value, options):
    return csv_rows(name, f"n;x\n1;{text}\n", f"n BIGINT, x {kind}", (1, value), options=options)


def not_local(name, kind, text, options):
    return csv_refused(name, f"n;x\n1;{text}\n", f"n BIGINT, x {kind}", 2, "x", options=options)


SIGNS = (
    local("decimal: names the comma", "DOUBLE", "-1,5", -1.5, COMMA),
    local("a DOUBLE may begin with the comma", "DOUBLE", ",5", 0.5, COMMA),
    local("an exponent follows a fraction with a comma", "DOUBLE", "2,5e-3", 0.0025, COMMA),
    local("decimal: is for DECIMAL, too", "DECIMAL(9,2)", "-1,50", Decimal("-1.50"), COMMA),
    local("a whole number needs no comma", "DOUBLE", "42", 42.0, COMMA),
    not_local("a point beside decimal: ',' is refused", "DOUBLE", "1.5", COMMA),
    not_local("a point beside decimal: ',' in a DECIMAL is refused", "DECIMAL(9,2)", "1.50", COMMA),
    local("thousands: groups a DECIMAL", "DECIMAL(12,2)", "-1.234.567,89", Decimal("-1234567.89"), EUROPE),
    local("thousands: groups a DOUBLE", "DOUBLE", "12.345,5", 12345.5, EUROPE),
    local("thousands: groups a BIGINT", "BIGINT", "1.234", 1234, EUROPE),
    local("numbers without groups are accepted beside thousands:", "DOUBLE", "1234567,5", 1234567.5, EUROPE),
    local("a number below a thousand has no groups", "BIGINT", "999", 999, EUROPE),
    local("an apostrophe groups", "DOUBLE", "1'234'567.5", 1234567.5, {"delimiter": ";", "thousands": "'"}),
    local("a blank groups", "BIGINT", "1 234 567", 1234567, {"delimiter": ";", "thousands": " "}),
    local("a comma groups", "DOUBLE", "1,234.5", 1234.5, {"delimiter": ";", "thousands": ","}),
    csv_value("a comma groups in quotes", "BIGINT", '"1,234"', 1234, options={"thousands": ","}),
    not_local("a group of two digits is refused", "BIGINT", "1.23", EUROPE),
    not_local("a group of four digits is refused", "BIGINT", "1.2345", EUROPE),
    not_local("two signs between groups", "BIGINT", "1..234", EUROPE),
    not_local("a sign before the first group is refused", "BIGINT", ".234", EUROPE),
    not_local("a sign after the last group is refused", "BIGINT", "1.234.", EUROPE),
    not_local("a first group of four digits is refused", "BIGINT", "1234.567", EUROPE),
    not_local("Indian groups", "BIGINT", "12.34.567", EUROPE),
    not_local("an English fraction beside thousands: '.' is refused", "DOUBLE", "1234.56", EUROPE),
    not_local("an English number beside thousands: '.' is refused", "DOUBLE", "1,234.56", EUROPE),
    not_local("a no-break space where a blank groups", "BIGINT", "1\xa0234", {"delimiter": ";", "thousands": " "}),
    not_local("a blank before a group of a blank is refused", "BIGINT", " 234", {"delimiter": ";", "thousands": " "}),
    not_local("a BIGINT beyond its limit in groups", "BIGINT", "9.223.372.036.854.775.808", EUROPE),
    local(
        "locale: de-DE is for DECIMAL",
        "DECIMAL(9,2)",
        "1234,56",
        Decimal("1234.56"),
        {"delimiter": ";", "locale": "de-DE"},
    ),
    local("locale: de-DE leaves DOUBLE as it is", "DOUBLE", "1.5", 1.5, {"delimiter": ";", "locale": "de-DE"}),
    not_local("locale: de-DE is not for DOUBLE", "DOUBLE", "1,5", {"delimiter": ";", "locale": "de-DE"}),
    local(
        "locale: en-US is for DECIMAL",
        "DECIMAL(9,2)",
        "1234.56",
        Decimal("1234.56"),
        {"delimiter": ";", "locale": "en-US"},
    ),
)

DECIMALS = (
    csv_value("a DECIMAL has its digits", "DECIMAL(5,2)", "-123.45", Decimal("-123.45")),
    csv_value("a DECIMAL may be whole", "DECIMAL(5,2)", "42", Decimal("42.00")),
    csv_value("a DECIMAL may have fewer digits after the point", "DECIMAL(5,2)", "1.5", Decimal("1.50")),
    csv_value("zeros beyond the digits after the point are accepted", "DECIMAL(5,2)", "1.5000", Decimal("1.50")),
    csv_value("zeros after the point are accepted in a DECIMAL without fractions", "DECIMAL(5,0)", "7.00", Decimal(7)),
    csv_value(
        "38 digits are exact",
        "DECIMAL(38,18)",
        "12345678901234567890.123456789012345678",
        Decimal("12345678901234567890.123456789012345678"),
    ),
    csv_value("38 nines are exact", "DECIMAL(38,0)", "9" * 38, Decimal("9" * 38)),
    csv_value("a DECIMAL beyond 2^53 is exact", "DECIMAL(18,2)", "9007199254740993.01", Decimal("9007199254740993.01")),
    csv_no_value("a third digit after the point is refused", "DECIMAL(5,2)", "1.505"),
    csv_no_value(
        "a digit far behind zeros is refused", "DECIMAL(5,2)", "1.50000000000000000000000000000000000000000000000001"
    ),
    csv_no_value("a fraction in a DECIMAL without fractions is refused", "DECIMAL(5,0)", "7.1"),
    csv_no_value("a fourth digit before the point is refused", "DECIMAL(5,2)", "1234"),
    csv_no_value("a fourth digit before the point and none after it is refused", "DECIMAL(5,2)", "-1234.5"),
    csv_no_value("39 digits are refused", "DECIMAL(38,0)", "1" + "0" * 38),
    csv_no_value("an exponent in a DECIMAL is refused", "DECIMAL(5,2)", "1e2"),
    csv_no_value("a plus sign is no form of DECIMAL", "DECIMAL(5,2)", "+1.5"),
    csv_no_value("a DECIMAL that begins with a point", "DECIMAL(5,2)", ".5"),
    csv_no_value("a DECIMAL that ends with a point", "DECIMAL(5,2)", "5."),
    csv_no_value("NaN is no DECIMAL", "DECIMAL(5,2)", "NaN"),
    csv_no_value("a blank before a DECIMAL is refused", "DECIMAL(5,2)", " 1.5"),
    csv_no_value("full-width digits in a DECIMAL are refused", "DECIMAL(5,2)", "\uff11.5"),
    json_value(
        "thirty digits of a JSON number are exact",
        "DECIMAL(38,18)",
        "123456789012.123456789012345678",
        Decimal("123456789012.123456789012345678"),
        differs="json.loads makes a double of a fraction.",
    ),
    json_value("a whole JSON number is a DECIMAL", "DECIMAL(38,0)", "9" * 38, Decimal("9" * 38)),
    json_value("trailing zeros of a JSON number are accepted", "DECIMAL(5,2)", "1.5000", Decimal("1.50")),
    json_no_value("a JSON number with an exponent is no DECIMAL", "DECIMAL(5,2)", "1e2"),
    json_no_value("a third digit of a JSON number after the point is refused", "DECIMAL(5,2)", "1.505"),
    json_no_value("a JSON string is no DECIMAL", "DECIMAL(5,2)", '"1.50"'),
)

BOOLEANS = (
    csv_value("true is landed", "BOOLEAN", "true", True),
    csv_value("false is landed", "BOOLEAN", "false", False),
    csv_value("TRUE is landed", "BOOLEAN", "TRUE", True),
    csv_value("FALSE is landed", "BOOLEAN", "FALSE", False),
    csv_no_value("1 is no truth value", "BOOLEAN", "1"),
    csv_no_value("0 is no truth value", "BOOLEAN", "0"),
    csv_no_value("t is no truth value", "BOOLEAN", "t"),
    csv_no_value("yes is no truth value", "BOOLEAN", "yes"),
    csv_no_value("a blank after a truth value is refused", "BOOLEAN", "true "),
    csv_no_value("a truth value with a Greek E is refused", "BOOLEAN", "FALS\u0395"),
)

BINARIES = (
    csv_value("BINARY in CSV is its text in UTF-8", "BINARY", "é", "é".encode()),
    csv_value("BINARY in CSV is no base64", "BINARY", "AAA=", b"AAA="),
    csv_rows(
        "BINARY in a file of cp1252 is in UTF-8",
        b"n,x\n1,\xe9\n",
        "n BIGINT, x BINARY",
        (1, "é".encode()),
        options={"encoding": "cp1252"},
    ),
    csv_value("BINARY may be the empty text", "BINARY", '""', b""),
    json_value("BINARY in JSON is base64", "BINARY", '"AP8="', b"\x00\xff"),
    json_value("BINARY in JSON may be empty", "BINARY", '""', b""),
    json_no_value("a sign that is not of base64", "BINARY", '"AP8*"'),
    json_no_value("a JSON number is no BINARY", "BINARY", "5"),
)

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
