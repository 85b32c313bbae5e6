"""Encodings, marks, wrong bytes and compressed files."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib

import pyarrow as pa

from tests.text.odd_case import Case, Refused, csv_refused, csv_rows, csv_value, json_refused, json_rows, json_value

NX = "n BIGINT, x STRING"
LINES = "n,x\n1,é\n2,b\n"
ROWS = ((1, "é"), (2, "b"))
BOM = b"\xef\xbb\xbf"


def zipped(content):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("x.csv", content)
    return target.getvalue()


def tarred(content):
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        entry = tarfile.TarInfo("x.csv")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return target.getvalue()


def zst(content):
    return pa.compress(content, codec="zstd", asbytes=True)


def in_encoding(encoding, codec=None):
    name = f"a file in {encoding} is read with the option"
    return csv_rows(name, LINES.encode(codec or encoding), NX, *ROWS, options={"encoding": encoding})


def not_utf8(name, wrong):
    return csv_refused(name, b"n,x\n1,a\n2,b" + wrong + b"c\n3,d\n", NX, 3)


def packed(name, file, content, *, line=None):
    return csv_refused(name, content, NX, line, file=file)


ENCODINGS = (
    csv_rows("UTF-8 needs no mark", LINES, NX, *ROWS),
    csv_rows("a byte order mark before the header is no part of the first name", BOM + LINES.encode(), NX, *ROWS),
    csv_rows("a mark stands before a quoted header", BOM + b'"n","x"\n1,a\n', NX, (1, "a")),
    csv_rows(
        "a mark stands before the first value without a header", BOM + b"1,a\n", NX, (1, "a"), options={"header": False}
    ),
    Case(
        "each file has its own mark",
        "csv",
        {"x.csv": BOM + b"n,x\n1,a\n", "y.csv": BOM + b"n,x\n2,b\n"},
        NX,
        rows=({"n": 1, "x": "a"}, {"n": 2, "x": "b"}),
    ),
    csv_value("a mark within the file is a character like others", "STRING", "a\ufeffb", "a\ufeffb"),
    csv_value("a mark at the beginning of a later value belongs to it", "STRING", "\ufeffb", "\ufeffb"),
    json_rows("a mark stands before the first object", BOM + b'{"n": 1, "x": "a"}\n', NX, (1, "a")),
    csv_value("a character of four bytes is one character", "STRING", "\U0001f600", "\U0001f600"),
    csv_value("a combining accent stays as it is written", "STRING", "e\u0301", "e\u0301"),
    csv_value("the replacement character itself is a character", "STRING", "\ufffd", "\ufffd"),
    csv_value("the noncharacter U+FFFF is landed as it is written", "STRING", "a\uffffb", "a\uffffb"),
    csv_value("a control character belongs to the value", "STRING", "a\x01\x1a\x7fb", "a\x01\x1a\x7fb"),
    not_utf8("a byte of ISO-8859-1 is no UTF-8", b"\xe9"),
    not_utf8("an overlong form is no character", b"\xc0\x80"),
    not_utf8("half of a surrogate pair in UTF-8 is no character", b"\xed\xa0\xbd"),
    not_utf8("a code point beyond U+10FFFF is no character", b"\xf4\x90\x80\x80"),
    not_utf8("a continuation byte alone is no character", b"\x80"),
    not_utf8("the byte FF is no character", b"\xff"),
    csv_refused("a character cut off by the end of the file is refused", b"n,x\n1,a\n2,\xc3", NX, 3),
    csv_refused("a wrong byte in the header is refused", b"n,x\xe9\n1,a\n", NX, 1),
    csv_refused("a wrong byte in a quoted value is refused", b'n,x\n1,"\xe9"\n', NX, 2),
    csv_refused(
        "the character NUL is refused",
        b"n,x\n1,a\n2,b\0c\n",
        NX,
        3,
        differs="csv.reader takes NUL for a character since Python 3.11.",
    ),
    csv_refused(
        "NUL in quotes is refused",
        b'n,x\n1,"\0"\n',
        NX,
        2,
        differs="csv.reader takes NUL for a character since Python 3.11.",
    ),
    csv_refused(
        "a file that a crash filled with NUL is refused",
        b"n,x\n1,a\n" + bytes(4096),
        NX,
        3,
        differs="csv.reader takes NUL for a character since Python 3.11.",
    ),
    json_refused("NUL in a JSON string is refused", b'{"n": 1, "x": "a\0b"}\n', NX, 1),
    json_refused("a wrong byte in JSON is refused", b'{"n": 0}\n{"n": 1, "x": "\xe9"}\n', NX, 2),
    json_refused(
        "a wrong byte in a field that is not declared is refused", b'{"n": 1, "x": "a", "s": "\xe9"}\n', NX, 1
    ),
    in_encoding("ISO-8859-1"),
    in_encoding("cp1252"),
    in_encoding("UTF-16"),
    in_encoding("UTF-32"),
    in_encoding("UTF-16LE", "utf-16-le"),
    in_encoding("UTF-16BE", "utf-16-be"),
    in_encoding("utf_32_be"),
    in_encoding("utf-8-sig"),
    in_encoding("mac_roman"),
    csv_rows(
        "UTF-16 with the big end first says so in its mark",
        b"\xfe\xff" + LINES.encode("utf-16-be"),
        NX,
        *ROWS,
        options={"encoding": "UTF-16"},
    ),
    csv_rows(
        "EBCDIC has other bytes for line ends",
        b"n,x\n1,ab\n".decode().encode("cp037"),
        NX,
        (1, "ab"),
        options={"encoding": "cp037"},
    ),
    csv_rows(
        "a second byte of Shift JIS that equals the delimiter is no delimiter",
        "n|x\n1|\u30dd\n".encode("shift_jis"),
        NX,
        (1, "\u30dd"),
        options={"encoding": "shift_jis", "delimiter": "|"},
    ),
    csv_rows(
        "a second byte of Shift JIS that equals the escape is no escape",
        'n,x\n1,"\u8868"\n'.encode("shift_jis"),
        NX,
        (1, "\u8868"),
        options={"encoding": "shift_jis", "escape": "\\"},
    ),
    csv_rows(
        "the euro sign of cp1252 is the byte 80", b"n,x\n1,\x80\n", NX, (1, "\u20ac"), options={"encoding": "cp1252"}
    ),
    csv_refused("the byte 81 is no character of cp1252", b"n,x\n1,\x81\n", NX, 2, options={"encoding": "cp1252"}),
    csv_rows(
        "the byte 80 of ISO-8859-1 is U+0080", b"n,x\n1,\x80\n", NX, (1, "\x80"), options={"encoding": "ISO-8859-1"}
    ),
    csv_rows(
        "the byte 85 of ISO-8859-1 is no line end",
        b"n,x\n1,a\x85b\n",
        NX,
        (1, "a\x85b"),
        options={"encoding": "ISO-8859-1"},
    ),
    csv_refused("a byte beyond ASCII is refused in ASCII", b"n,x\n1,\xe9\n", NX, 2, options={"encoding": "ascii"}),
    csv_refused("UTF-16 without the option is refused", LINES.encode("utf-16"), NX, None),
    csv_refused(
        "UTF-16 without option and mark is refused for NUL",
        "n,x\n1,a\n".encode("utf-16-le"),
        NX,
        1,
        differs="csv.reader takes NUL for a character since Python 3.11.",
    ),
    csv_refused(
        "half a character at the end of UTF-16 is refused",
        "n,x\n1,a\n".encode("utf-16") + b"a",
        NX,
        3,
        options={"encoding": "UTF-16"},
    ),
    csv_refused(
        "a surrogate alone in UTF-16 is refused",
        b"\xff\xfe" + "n,x\n1,".encode("utf-16-le") + b"\x3d\xd8" + "\n".encode("utf-16-le"),
        NX,
        2,
        options={"encoding": "UTF-16"},
    ),
    json_rows(
        "JSON in UTF-16 is read with the option",
        '{"n": 1, "x": "é"}\n'.encode("utf-16"),
        NX,
        (1, "é"),
        options={"encoding": "UTF-16"},
    ),
    json_value("JSON has its characters as they are", "STRING", '"é\u2028\U0001f600"', "é\u2028\U0001f600"),
)

COMPRESSION = (
    csv_rows("gz is decompressed", gzip.compress(LINES.encode()), NX, *ROWS, file="x.csv.gz"),
    csv_rows(
        "gz may have several members",
        gzip.compress(b"n,x\n1,") + gzip.compress(b"\xc3") + gzip.compress(b"\xa9\n2,b\n"),
        NX,
        *ROWS,
        file="x.csv.gz",
    ),
    csv_rows(
        "zero bytes after the last member of gz are left out",
        gzip.compress(LINES.encode()) + bytes(512),
        NX,
        *ROWS,
        file="x.csv.gz",
    ),
    csv_rows(
        "a mark stands at the beginning of the decompressed text",
        gzip.compress(BOM + LINES.encode()),
        NX,
        *ROWS,
        file="x.csv.gz",
    ),
    csv_rows("bz2 is decompressed", bz2.compress(LINES.encode()), NX, *ROWS, file="x.csv.bz2"),
    csv_rows("zst is decompressed", zst(LINES.encode()), NX, *ROWS, file="x.csv.zst"),
    csv_rows("the suffix alone decides about compression", gzip.compress(LINES.encode()), NX, *ROWS, file="x.gz"),
    csv_rows(
        "compressed text may be in UTF-16",
        gzip.compress(LINES.encode("utf-16")),
        NX,
        *ROWS,
        file="x.csv.gz",
        options={"encoding": "UTF-16"},
    ),
    json_rows("JSON in zst is decompressed", zst(b'{"n": 1, "x": "a"}\n'), NX, (1, "a"), file="x.json.zst"),
    json_rows("JSON in gz is decompressed", gzip.compress(b'{"n": 1, "x": "a"}\n'), NX, (1, "a"), file="x.json.gz"),
    csv_refused(
        "a line of compressed text is counted in the text",
        gzip.compress(b"n,x\n1,a\nb,b\n"),
        NX,
        3,
        "n",
        file="x.csv.gz",
    ),
    packed("gz without its end is refused", "x.csv.gz", gzip.compress(LINES.encode() * 500)[:-12]),
    packed("gz without its checksum is refused", "x.csv.gz", gzip.compress(LINES.encode())[:-8]),
    packed("gz with a wrong checksum is refused", "x.csv.gz", gzip.compress(LINES.encode())[:-8] + b"wrong!!!"),
    packed(
        "a second member of gz without its end is refused",
        "x.csv.gz",
        gzip.compress(LINES.encode()) + gzip.compress(b"3,c\n")[:-9],
    ),
    packed("bz2 without its end is refused", "x.csv.bz2", bz2.compress(LINES.encode())[:-5]),
    packed("zst without its end is refused", "x.csv.zst", zst(LINES.encode())[:-3]),
    packed("plain text with the suffix of gz is refused", "x.csv.gz", LINES.encode()),
    packed("zlib without the frame of gz is refused", "x.csv.gz", zlib.compress(LINES.encode())),
    packed("bz2 with the suffix of zst is refused", "x.csv.zst", bz2.compress(LINES.encode())),
    packed("gz without its suffix is refused", "x.csv", gzip.compress(LINES.encode())),
    packed("zst without its suffix is refused", "x.csv", zst(LINES.encode())),
    packed("xz is refused", "x.csv.xz", lzma.compress(LINES.encode())),
    packed("lz4 is refused", "x.csv.lz4", pa.compress(LINES.encode(), codec="lz4", asbytes=True)),
    packed("a zip archive is refused", "x.zip", zipped(LINES.encode())),
    packed("a zip archive without its suffix is refused", "x.csv", zipped(LINES.encode())),
    packed("a tar archive is refused", "x.tar", tarred(LINES.encode())),
    packed("a tar archive in gz is refused", "x.tar.gz", gzip.compress(tarred(LINES.encode()))),
    Case(
        "one bad file of two refuses the landing",
        "csv",
        {"x.csv": b"n,x\n1,a\n", "y.csv.gz": gzip.compress(b"n,x\n2,b\n")[:-9]},
        NX,
        refused=Refused("y.csv.gz", None, None),
    ),
)
