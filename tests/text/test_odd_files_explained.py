"""Where Python's csv and json read another structure than our page promises, the case says why. Standard library only."""

import csv
import io
import json
import math
import re
from decimal import Decimal

from tests.text.odd_files import CASES

LINE_END = re.compile(r"\r\n|\n")


def readable(case):
    """Plain files in UTF-8 that Python's readers take as text."""
    if case.options.get("encoding", "UTF-8") != "UTF-8" or (case.refused and case.refused.code == 78):
        return False
    if case.format == "json" and {"lines", "multiLine"} & case.options.keys():
        return False  # json has no notion of several documents in one text
    return all(name.endswith((".csv", ".json")) and is_utf8(content) for name, content in case.files.items())


def is_utf8(content):
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


READABLE = [case for case in CASES if readable(case)]


def csv_texts(case, content):
    """The rows of texts; csv.reader returns an empty row for an empty line."""
    options = case.options
    text = content.decode("utf-8-sig")
    for _ in range(options.get("skip_rows", 0)):
        text = LINE_END.split(text, maxsplit=1)[1]
    quote = options.get("quote", '"')
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=options.get("delimiter", options.get("sep", ",")),
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        escapechar=options.get("escape"),
        doublequote="escape" not in options,
        strict=True,
    )
    return [row for row in reader if row]


def json_objects(content):
    lines = content.decode("utf-8-sig").split("\n")
    return [json.loads(line) for line in (lines if lines[-1] else lines[:-1])]


def read(case):
    """The rows as Python's readers divide them, by file; None if they refuse one."""
    try:
        if case.format == "csv":
            return [csv_texts(case, content) for content in case.files.values()]
        return [json_objects(content) for content in case.files.values()]
    except (csv.Error, json.JSONDecodeError):
        return None


def agrees(case):
    files = read(case)
    if files is None or case.refused:
        # A value at fault in a row that Python divides as we do is no disagreement: csv and json do not check types.
        return (files is None) == bool(case.refused and case.refused.column is None)
    return csv_rows_agree(case, files) if case.format == "csv" else json_rows_agree(case, files)


def csv_rows_agree(case, files):
    records = []
    for rows in files:
        header = rows[0] if case.options.get("header", True) else None
        records += [(header, row) for row in (rows[1:] if header else rows)]
    return len(records) == len(case.rows) and all(
        csv_row_agrees(case, header, texts, row) for (header, texts), row in zip(records, case.rows, strict=True)
    )


def csv_row_agrees(case, header, texts, row):
    if len(texts) != len(row):
        return False
    names = [name.lower() for name in header or ()]
    by_name = len(set(names)) == len(row) and set(names) == {name.lower() for name in row}
    kinds = kinds_of(case)
    for position, (name, value) in enumerate(row.items()):
        text = texts[names.index(name.lower()) if by_name else position]
        nulls = {"", case.options.get("null", ""), case.options.get("nullValue", "")}
        if value is None:
            same = text in nulls
        elif kinds[name] == "STRING":
            same = text == value
        elif kinds[name] in {"BIGINT", "INT", "SMALLINT", "TINYINT"} and re.fullmatch(r"-?\d+", text):
            same = int(text) == value
        else:
            same = bool(text) or value == b""
        if not same:
            return False
    return True


def kinds_of(case):
    if case.types:
        return case.types
    kinds = re.findall(r"(?:`([^`]+)`|(\w+)) ([A-Z]+)", case.schema)
    return {in_backticks or bare: kind for in_backticks, bare, kind in kinds}


def json_rows_agree(case, files):
    objects = [value for values in files for value in values]
    if len(objects) != len(case.rows) or not all(isinstance(value, dict) for value in objects):
        return False
    kinds = case.types or dict(re.findall(r"(\w+) ((?:[A-Z]+<.*>)|\w+)", case.schema))
    return all(
        value_agrees(parsed.get(name), value, kinds[name])
        for parsed, row in zip(objects, case.rows, strict=True)
        for name, value in row.items()
    )


def value_agrees(parsed, value, kind):
    """Whether the parsed value is the one that we land, as far as JSON has its type."""
    if parsed is None or value is None:
        return parsed is value
    if isinstance(value, dict):
        return isinstance(parsed, dict) and all(
            value_agrees(parsed.get(name), item, kind) for name, item in value.items()
        )
    if isinstance(value, list):
        return (
            isinstance(parsed, list)
            and len(parsed) == len(value)
            and all(value_agrees(*pair, kind) for pair in zip(parsed, value, strict=True))
        )
    if "JSON" in kind:
        return json.loads(value) == parsed
    if isinstance(value, Decimal):
        return Decimal(repr(parsed)) == value
    if isinstance(value, float):
        return parsed == value or (math.isnan(parsed) and math.isnan(value))
    if isinstance(value, bytes) or (isinstance(value, int) and "TIMESTAMP" in kind) or "DATE" in kind:
        return isinstance(parsed, str)
    return parsed == value and type(parsed) is type(value)


def test_python_divides_the_files_as_the_page_does_unless_the_case_says_why_not():
    assert [case.name for case in READABLE if agrees(case) is bool(case.differs)] == []


def test_only_cases_that_python_can_read_explain_a_disagreement():
    assert [case.name for case in CASES if case.differs and case not in READABLE] == []


def test_each_case_has_a_name_of_its_own():
    names = [case.name for case in CASES]
    assert sorted(set(names)) == sorted(names)


def test_each_case_expects_either_rows_or_a_rejection_in_one_of_its_files():
    assert [case.name for case in CASES if (case.rows is None) is (case.refused is None)] == []
    refused = {(case.refused.code, case.refused.file in case.files) for case in CASES if case.refused}
    assert refused == {(65, True), (78, False)}
