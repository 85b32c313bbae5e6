"""Files with another content than their name or `format:` says: the message names the content, and nothing is landed."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from tests.ingest.land_by_arrow import arrow_at, land_by_arrow
from tests.ingest.local_engine import T0
from tests.ingest.text_files import Files
from tests.refusals import containing, refused

TEXT = f"user,t\nann,{T0}\nbob,{T0 + 1}\n".encode()


def zipped() -> bytes:
    """Return an archive with the text."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.csv", TEXT)
    return file.getvalue()


def archived() -> bytes:
    """Return a tar archive with the text."""
    file, member = io.BytesIO(), tarfile.TarInfo("a.csv")
    member.size = len(TEXT)
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(member, io.BytesIO(TEXT))
    return file.getvalue()


def by_arrow(codec: str) -> bytes:
    """Return the text, compressed by Arrow."""
    return bytes(pa.compress(TEXT, codec=codec, asbytes=True))


CONTENTS = {
    "xz": lzma.compress(TEXT),
    "zip": zipped(),
    "tar": archived(),
    "gzip": gzip.compress(TEXT),
    "bzip2": bz2.compress(TEXT),
    "zstd": by_arrow("zstd"),
    "7z": b"7z\xbc\xaf\x27\x1c" + b"\0" * 40,
    "compress": b"\x1f\x9d\x90" + TEXT,
    "Avro": b"Obj\x01\x04\x14avro.codec\x08null" + TEXT,
    "Parquet": b"PAR1" + TEXT,
}


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path, arrow_at(tmp_path), kind="csv")


def write(files, name, content):
    (files.root / "raw" / name).write_bytes(content)


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.csv.bz2"])
def test_the_content_of_a_file_is_named(files, kind, name):
    if (kind, name[-3:]) in {("gzip", ".gz"), ("bzip2", "bz2")}:
        pytest.skip("the name is right")
    write(files, name, CONTENTS[kind])
    code = "file-not-text" if name == "a.csv" else "file-not-compressed-so"
    with refused(code, kind=kind, file=containing(name)):
        files.land()


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.bz2", "a.csv.zst"])
def test_text_in_a_file_named_as_compressed_is_not_called_damaged(files, name):
    write(files, name, TEXT)
    with refused("file-not-compressed-so", kind="text"):
        files.land()


def test_an_archive_within_gzip_is_named(files):
    write(files, "a.csv.gz", gzip.compress(archived()))
    with refused("file-not-text", kind="tar"):
        files.land()


@pytest.mark.parametrize("content", [zlib.compress(TEXT), lzma.compress(TEXT, format=lzma.FORMAT_ALONE)])
def test_bytes_that_are_no_text_are_called_binary_or_not_utf_8(files, content):
    write(files, "a.csv", content)
    with pytest.raises(Exception, match=r"binary data|not UTF-8: it is not text"):
        files.land()


@pytest.mark.parametrize("suffix", ["xz", "zip", "snappy", "sz", "deflate", "lzma", "tgz", "7z", "br", "lz4", "Z"])
def test_a_compression_that_is_not_read_is_named(files, suffix):
    write(files, f"a.csv.{suffix}", by_arrow("snappy"))
    with refused("compression-not-supported", compression=suffix.lower()):
        files.land()


@pytest.mark.parametrize(
    "content", [gzip.compress(TEXT) + b"\0" * 700, gzip.compress(TEXT[:20]) + gzip.compress(TEXT[20:])]
)
def test_gzip_that_gzip_itself_accepts_is_landed(files, content):
    write(files, "a.csv.gz", content)
    assert files.land().rows == 2


def test_a_separator_that_is_a_control_character_is_text(tmp_path):
    files = Files(tmp_path, arrow_at(tmp_path), kind="csv", options={"delimiter": "\x01"})
    write(files, "a.csv", TEXT.replace(b",", b"\x01"))
    assert files.land().rows == 2


class Keys(pe.KmsClient):  # type: ignore[misc]
    """Wraps keys by putting the name of a master key before them."""

    def wrap_key(self, key_bytes, master_key_identifier):
        return base64.b64encode(master_key_identifier.encode() + key_bytes)

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return base64.b64decode(wrapped_key)[len(master_key_identifier) :]


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("is_first", [True, False])
def test_encrypted_parquet_is_called_encrypted(tmp_path, plaintext_footer, is_first):
    (tmp_path / "raw").mkdir()
    rows = pa.table({"user": ["ann"], "t": [T0]})
    if not is_first:
        pq.write_table(rows, tmp_path / "raw" / "0.parquet")
        land_by_arrow(tmp_path)
    settings = pe.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["user"]}, plaintext_footer=plaintext_footer
    )
    keys = pe.CryptoFactory(lambda _: Keys()).file_encryption_properties(pe.KmsConnectionConfig(), settings)
    with pq.ParquetWriter(tmp_path / "raw" / "1.parquet", rows.schema, encryption_properties=keys) as file:
        file.write_table(rows)
    with refused("parquet-encrypted", file=containing("1.parquet")):
        land_by_arrow(tmp_path)
