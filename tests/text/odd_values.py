"""Numbers, truth values and bytes as the page has them, and their neighbours."""

from decimal import Decimal
from math import inf, nan

from tests.text.odd_case import csv_no_value, csv_refused, csv_rows, csv_value, json_no_value, json_value


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
    csv_value("a DECIMAL that begins with a point", "DECIMAL(5,2)", ".5", Decimal("0.50")),
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
