"""All odd text files, in groups."""

from tests.text import odd_bytes, odd_decided, odd_json, odd_rows, odd_times, odd_types, odd_values
from tests.text.odd_case import Case, Refused

__all__ = ["CASES", "GROUPS", "Case", "Refused"]

GROUPS = {
    "encodings": odd_bytes.ENCODINGS,
    "compression": odd_bytes.COMPRESSION,
    "quotes": odd_rows.QUOTES,
    "lines": odd_rows.LINES,
    "headers": odd_rows.HEADERS,
    "nulls": odd_rows.NULLS,
    "whole numbers": odd_values.WHOLE,
    "doubles": odd_values.DOUBLES,
    "signs of numbers": odd_values.SIGNS,
    "decimals": odd_values.DECIMALS,
    "booleans": odd_values.BOOLEANS,
    "binaries": odd_values.BINARIES,
    "dates": odd_times.DATES,
    "times": odd_times.TIMES,
    "patterns of times": odd_times.PATTERNS,
    "scalars of JSON": odd_json.SCALARS,
    "syntax of JSON": odd_json.SYNTAX,
    "JSON over several lines": odd_json.SEVERAL,
    "nested values": odd_json.NESTED,
    "exact JSON": odd_json.EXACT,
    "files of JSON": odd_json.FILES,
    "types of CSV": odd_types.CSV,
    "types of JSON": odd_types.JSON,
    "options": odd_types.OPTIONS,
    "decided later": odd_decided.DECIDED_LATER,
}
CASES = tuple(case for group in GROUPS.values() for case in group)
