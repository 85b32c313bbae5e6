"""Files as sources: which files count, and what happens if one is removed, changed or only touched."""

from __future__ import annotations

import bz2
import gzip
import os
import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from rewindow.config.feed import feed_spec
from rewindow.contracts.ingest import SourceSpec
from rewindow.engine.worker.source_files import look_at_files, unchanged
from tests.ingest.land_by_arrow import land_by_arrow
from tests.ingest.local_engine import feed_config
from tests.refusals import containing, refused


def source(location):
    return SourceSpec("csv", str(location), "raw", {"header": "false"})


def merged(*looks):
    return {"files": {name: mark for look in looks for name, mark in look.position["files"].items()}}


@pytest.fixture
def folder(tmp_path):
    for name in ("a.csv", "sub/b.csv", "_hidden.csv", ".crc", "_temporary/c.csv"):
        path = tmp_path / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "raw"


def names(look, part="fresh"):
    return [piece.path.rpartition("raw/")[2] for piece in getattr(look, part)]


def test_hidden_files_do_not_count(folder):
    assert names(look_at_files(source(folder), None)) == ["a.csv", "sub/b.csv"]


def test_a_file_and_a_pattern_are_sources_too(folder):
    assert names(look_at_files(source(folder / "a.csv"), None)) == ["a.csv"]
    assert names(look_at_files(source(folder / "*.csv"), None)) == ["a.csv"]
    assert names(look_at_files(source(folder / "**" / "*.csv"), None)) == ["a.csv", "sub/b.csv"]


@pytest.mark.parametrize("path", ["raw", "raw/*.csv", "raw/*/*.csv", "r*/sub", ""])
def test_the_files_of_a_delta_table_are_no_files(folder, path):
    (folder / "sub" / "_delta_log" if "sub" in path else folder / "_delta_log").mkdir()
    with refused("source-is-table", format="csv"):
        look_at_files(source(folder.parent / path), None)


def test_known_files_are_told_from_fresh_ones(folder):
    first = look_at_files(source(folder), None)
    (folder / "z.csv").write_text("z")
    second = look_at_files(source(folder), first.position)
    assert (names(second), names(second, "rest")) == (["z.csv"], ["a.csv", "sub/b.csv"])
    assert names(look_at_files(source(folder), merged(first, second))) == []


def test_a_touched_or_copied_source_is_the_same(folder, tmp_path):
    first = look_at_files(source(folder), None)
    os.utime(folder / "a.csv", (1, 1))
    assert look_at_files(source(folder), first.position).fresh == ()
    shutil.copytree(folder, tmp_path / "copy")
    assert look_at_files(source(tmp_path / "copy"), first.position).fresh == ()


def test_a_file_that_is_gone_or_changed_is_refused(folder):
    first = look_at_files(source(folder), None)
    (folder / "a.csv").write_text("A.csv")
    with refused("landed-file-changed", file="a.csv", what="has changed"):
        look_at_files(source(folder), first.position)
    (folder / "a.csv").unlink()
    with refused("landed-file-changed", file="a.csv", what="is gone", when=containing("rows are to disappear")):
        look_at_files(source(folder), first.position)


def test_a_renamed_landed_file_is_named_with_its_new_name(folder):
    first = look_at_files(source(folder), None)
    (folder / "a.csv").rename(folder / "c.csv")
    with refused(
        "landed-file-changed", file="a.csv", what="is gone; c.csv has its content, so it was renamed: rename it back"
    ):
        look_at_files(source(folder), first.position)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_utf_16_file_is_refused_unless_the_source_says_so(tmp_path, encoding, kind):
    rows = {"csv": "\ufeffuser,t\nann,1\n", "json": '\ufeff{"user": "ann", "t": 1}\n'}[kind]
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / f"z.{kind}").write_bytes(rows.encode(encoding))
    with refused("text-not-utf8", file=containing(f"z.{kind}"), encoding="UTF-16"):
        land_by_arrow(tmp_path, source={"path": "raw", "format": kind})
    source = {"path": "raw", "format": kind, "options": {"encoding": "UTF-16"}}
    assert [row["user"] for row in land_by_arrow(tmp_path, source=source)] == ["ann"]


def test_the_same_file_under_two_names_is_refused_unless_copies_are_landed(folder):
    rows = "user,t\nann,1\n"
    for name in ("x.csv", "y.csv"):
        (folder / name).write_text(rows)
    with refused("file-content-repeated", file="y.csv", other="x.csv", hint=" or the other"):
        look_at_files(source(folder), None)
    (folder / "y.csv").unlink()
    first = look_at_files(source(folder), None)
    (folder / "b.csv").write_text(rows)
    with refused("file-content-repeated", file="b.csv", other="x.csv", hint=containing(", because x.csv is landed")):
        look_at_files(source(folder), first.position)
    assert names(look_at_files(replace(source(folder), lands_copies=True), first.position)) == ["b.csv"]


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_a_compressed_copy_of_a_file_is_refused_whichever_is_landed_first(folder, suffix):
    compress = {".gz": gzip.compress, ".bz2": bz2.compress}[suffix]
    rows = b"user,t\nann,1\n"
    (folder / "a.csv").write_bytes(rows)
    uncompressed = look_at_files(source(folder), None)
    packed = folder / f"z.csv{suffix}"
    packed.write_bytes(compress(rows))
    with refused("file-content-repeated", file=f"z.csv{suffix}", other="a.csv"):
        look_at_files(source(folder), uncompressed.position)
    (folder / "a.csv").unlink()
    first = look_at_files(source(folder), None)
    (folder / "a.csv").write_bytes(rows)
    with refused("file-content-repeated", file="a.csv", other=f"z.csv{suffix}"):
        look_at_files(source(folder), first.position)
    (folder / "a.csv").unlink()
    (folder / f"y.csv{suffix}").write_bytes(compress(rows[:7]) + compress(rows[7:]))
    with refused("file-content-repeated", file=f"y.csv{suffix}", other=f"z.csv{suffix}"):
        look_at_files(source(folder), first.position)


def test_a_compressed_copy_of_a_large_file_is_recognized(folder):
    rows = os.urandom(1 << 20) + bytes(65 << 20) + os.urandom(1 << 20)
    (folder / "a.csv").write_bytes(rows)
    (folder / "z.csv.gz").write_bytes(gzip.compress(rows, 1))
    with refused("file-content-repeated", file="z.csv.gz", other="a.csv"):
        look_at_files(source(folder), None)


def test_a_compressed_file_that_an_older_version_landed_is_known(folder):
    (folder / "z.csv.gz").write_bytes(gzip.compress(b"user,t\nann,1\n"))
    landed = {"files": {name: mark[:3] for name, mark in look_at_files(source(folder), None).position["files"].items()}}
    assert look_at_files(source(folder), landed).fresh == ()


def test_a_file_that_cannot_be_decompressed_is_named(folder):
    (folder / "z.csv.gz").write_bytes(gzip.compress(b"user,t\nann,1\n")[:-3])
    with refused("file-not-decompressed", file=containing("z.csv.gz")):
        look_at_files(source(folder), None)


def test_a_file_that_changes_while_it_is_landed_is_refused_also_in_a_generation_that_keeps_landings(folder):
    look = look_at_files(source(folder), None)
    for known in (look, replace(look, fresh=(), rest=look.fresh)):
        (folder / "a.csv").write_text("changed")
        with refused("file-changed-while-landing", file="a.csv"):
            unchanged(known, source(folder))
        (folder / "a.csv").write_text("a.csv")


def test_what_only_looks_does_not_decompress(folder):
    (folder / "z.csv.gz").write_bytes(b"not written yet")
    assert "z.csv.gz" in look_at_files(source(folder), None, to_land=False).position["files"]


@pytest.mark.parametrize(("compress", "suffix"), [(gzip.compress, ".gz"), (bz2.compress, ".bz2")])
def test_a_compressed_file_whose_name_does_not_say_so_is_named(tmp_path, compress, suffix):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "z.csv").write_bytes(compress(b"user,t\nann,1\n"))
    source = {"path": "raw", "format": "csv"}
    with refused("file-not-text", file=containing("z.csv"), fix=containing(f"z.csv{suffix}")):
        land_by_arrow(tmp_path, source=source)
    (tmp_path / "raw" / "z.csv").rename(tmp_path / "raw" / f"z.csv{suffix}")
    assert [row["user"] for row in land_by_arrow(tmp_path, source=source)] == ["ann"]


@pytest.mark.parametrize("suffix", [".xz", ".zip", ".lz4", ".snappy", ".deflate"])
def test_other_compressed_files_are_refused_by_what_they_are(tmp_path, suffix):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / f"z.csv{suffix}").write_bytes(b"user,t\nann,1\n")
    with refused("compression-not-supported", file=containing(f"z.csv{suffix}"), compression=suffix[1:]):
        land_by_arrow(tmp_path, source={"path": "raw", "format": "csv"})


def test_files_without_rows_may_be_equal(tmp_path):
    (tmp_path / "raw").mkdir()
    for name in ("x", "y"):
        pq.write_table(pa.table({"n": pa.array([], pa.int64())}), tmp_path / f"raw/{name}.parquet")
    spec = SourceSpec("parquet", str(tmp_path / "raw"), "raw", {})
    assert names(look_at_files(spec, None)) == ["x.parquet", "y.parquet"]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_a_pipe_or_a_dangling_link_in_a_source_is_refused_and_not_waited_for(folder, make):
    make(folder / "p.csv")
    with refused("file-not-regular", file="p.csv"):
        look_at_files(source(folder), None)


def test_an_empty_text_file_is_landed_once_it_has_rows(folder):
    (folder / "z.csv").touch()
    first = look_at_files(source(folder), None)
    assert (names(first), first.empty) == (["a.csv", "sub/b.csv"], ("z.csv",))
    (folder / "z.csv").write_text("z")
    second = look_at_files(source(folder), first.position)
    assert (names(second), second.empty) == (["z.csv"], ())
    (folder / "z.csv").write_text("")
    with refused("landed-file-changed", file="z.csv", what="has changed"):
        look_at_files(source(folder), merged(first, second))


def test_a_file_with_nothing_but_a_header_is_landed_once_it_has_rows(folder):
    with_header = replace(source(folder), options={"header": "true"})
    for name in ("a.csv", "sub/b.csv"):
        (folder / name).write_text(f"n\n{name}\n")
    (folder / "z.csv").write_text("n\n\n")
    first = look_at_files(with_header, None)
    assert (names(first), first.empty) == (["a.csv", "sub/b.csv"], ("z.csv",))
    (folder / "z.csv").write_text("n\n1\n")
    assert names(look_at_files(with_header, first.position)) == ["z.csv"]
    (folder / "sub/b.csv").write_text("n\n")
    with refused("source-without-rows", file="b.csv", reason="has no rows, because its first line is the header"):
        look_at_files(replace(with_header, location=str(folder / "sub")), None)


def test_a_source_of_empty_files_is_refused(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").touch()
    with refused("source-without-rows", file="a.csv", reason="is empty"):
        look_at_files(source(tmp_path / "raw"), None)


def test_an_empty_source_is_refused(tmp_path):
    with refused("source-without-files"):
        look_at_files(source(tmp_path / "nowhere"), None)


def test_partition_directories_are_seen(folder):
    (folder / "year=2013").mkdir()
    (folder / "year=2013" / "d.csv").write_text("d")
    assert look_at_files(source(folder), None).base == str(folder)


def test_files_need_an_arrival_where_one_is_asked_for():
    with pytest.raises(ValidationError, match="arrived_at: COLUMN"):
        feed_config(log={"arrived_at": None})
    with pytest.raises(ValidationError, match="arrived_at: COLUMN"):
        feed_config(landing={}, log={"arrived_at": None, "timestamp": "arrival"})


@pytest.mark.parametrize("root", ["p[1]", "p?q", "p*", "p[!a]", "{p}", "p\\q"])
@pytest.mark.parametrize(
    ("path", "found"),
    [("raw", ["a.csv", "sub/b.csv"]), ("raw/*.csv", ["a.csv"]), ("./raw//a.csv", ["a.csv"]), ("r*/sub", ["sub/b.csv"])],
)
def test_only_the_configured_path_is_a_pattern(tmp_path, root, path, found):
    for folder in (root, "p1", "p1q"):
        for name in ("a.csv", "sub/b.csv"):
            file = tmp_path / folder / "raw" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{folder}, {name}")
    feed = feed_config(log={"source": {"format": "csv", "path": path, "options": {"header": "false"}}})
    (log,) = feed_spec(feed, project_root=str(tmp_path / root), warehouse="w").logs
    look = look_at_files(log.source, None)
    assert [piece.path for piece in look.fresh] == [str(tmp_path / root / "raw" / name) for name in found]
    first = "raw/" if path.startswith("r*") else ""
    assert [piece.name for piece in look.fresh] == [first + name for name in found]


def test_an_absolute_path_is_a_pattern_as_a_whole(folder):
    path = str(folder.parent / "r[a]w" / "*.csv")
    feed = feed_config(log={"source": {"format": "csv", "path": path, "options": {"header": "false"}}})
    (log,) = feed_spec(feed, project_root=str(folder), warehouse="w").logs
    assert names(look_at_files(log.source, None)) == ["a.csv"]


def test_a_link_that_leads_out_of_the_folder_is_refused_by_name(folder, tmp_path):
    outside = tmp_path / "outside" / "x.csv"
    outside.parent.mkdir()
    outside.write_text("x")
    for link, target in (("l.csv", outside), ("sub/l.csv", outside), ("l", outside.parent), ("up", tmp_path)):
        (folder / link).symlink_to(target)
        with refused("source-link-leads-out", link=str(folder / link), target=str(target)):
            look_at_files(source(folder), None)
        (folder / link).unlink()
    (folder / "l").symlink_to(outside.parent)
    for pattern in ("*/*.csv", "**/*.csv", "l*"):
        with refused("source-link-leads-out", target=str(outside.parent)):
            look_at_files(source(folder / pattern), None)


def test_a_source_that_follows_links_enters_each_folder_once(folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.csv").write_text("x")
    (outside / "circle").symlink_to(outside)
    (outside / "back").symlink_to(folder)
    (folder / "l").symlink_to(outside)
    (folder / "n.csv").symlink_to(outside / "x.csv")
    following = replace(source(folder), follows_links=True, lands_copies=True)
    assert names(look_at_files(following, None)) == ["a.csv", "l/x.csv", "n.csv", "sub/b.csv"]


def test_links_within_the_folder_and_the_folder_as_a_link_are_no_links_out(folder, tmp_path):
    (folder / "..data").mkdir()
    (folder / "..data" / "m.csv").write_text("m")
    (folder / "m.csv").symlink_to("..data/m.csv")
    (folder / "self").symlink_to(".")
    (folder / "_hidden").symlink_to(tmp_path)
    assert names(look_at_files(source(folder), None)) == ["a.csv", "m.csv", "sub/b.csv"]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "raw").symlink_to(folder)
    assert names(look_at_files(source(tmp_path / "elsewhere" / "raw"), None)) == ["a.csv", "m.csv", "sub/b.csv"]
    (tmp_path / "named.csv").symlink_to(folder / "a.csv")
    assert len(look_at_files(source(tmp_path / "named.csv"), None).fresh) == 1


def test_a_file_whose_name_is_not_utf8_is_refused_and_a_hidden_one_is_not(folder):
    (folder / "_\udcff.csv").write_text("x")
    assert names(look_at_files(source(folder), None)) == ["a.csv", "sub/b.csv"]
    (folder / "\udcff.csv").write_text("x")
    with refused("name-not-utf8", name="\udcff.csv") as caught:
        look_at_files(source(folder), None)
    assert caught.value.exit_code == 66
