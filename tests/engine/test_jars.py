"""The two Delta jars: verified by digest, fetched once, never partial."""

from __future__ import annotations

import hashlib
import shutil
import stat
from pathlib import Path

import pytest

from rewindow.engine.spark import jars
from rewindow.engine.spark.jars import DELTA, Jar, cache_dir, find_jars, ivy_command, required_jars, resolve_jars
from tests.refusals import containing, refused


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Jar, ...]:
    """Pin two small jars whose content is their name, in a cache of their own."""
    names = ("one", "two")
    small = tuple(Jar("g", name, "1", hashlib.sha256(f"{name}\n".encode()).hexdigest()) for name in names)
    monkeypatch.setattr(jars, "required_jars", lambda: small)
    monkeypatch.setenv("REWINDOW_CACHE", str(tmp_path))
    return small


def fake_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> Path:
    """Replace Ivy by a shell script; ``$name`` is the jar to fetch and ``$to`` its destination."""
    program = tmp_path / "java"
    program.write_text(f'#!/bin/sh\necho run >> {tmp_path}/calls\nname="$1"\nto="$2"\n{script}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def command(jar: Jar, scratch: Path) -> list[str]:
        return [str(program), jar.artifact, str(scratch / jar.file_name)]

    monkeypatch.setattr(jars, "ivy_command", command)
    return tmp_path / "calls"


def test_missing_jars_are_fetched_once(pinned, monkeypatch, tmp_path):
    calls = fake_java(monkeypatch, tmp_path, 'echo "$name" > "$to"')
    reported: list[str] = []
    paths = resolve_jars(report=reported.append)
    assert [path.name for path in paths] == ["one-1.jar", "two-1.jar"]
    assert reported == ["fetching 1/2 one-1.jar", "fetching 2/2 two-1.jar"]
    assert resolve_jars(report=reported.append) == paths
    assert calls.read_text() == "run\nrun\n"
    assert sorted(path.name for path in (tmp_path / "jars").iterdir()) == ["one-1.jar", "two-1.jar"]


def test_a_jar_with_another_digest_is_rejected_and_deleted(pinned, monkeypatch, tmp_path):
    fake_java(monkeypatch, tmp_path, 'echo "else" > "$to"')
    with refused(
        "jar-not-fetched",
        group="g",
        artifact="one",
        version="1",
        reason=containing("has sha256 235df3f729df"),
    ):
        resolve_jars()
    assert list((tmp_path / "jars").iterdir()) == []


def test_a_failed_fetch_states_reason_and_fix(pinned, monkeypatch, tmp_path):
    fake_java(monkeypatch, tmp_path, 'echo ":: problems ::"; echo " module not found: g#one;1"; exit 1')
    with refused("jar-not-fetched", artifact="one", reason=containing("module not found: g#one;1")) as caught:
        resolve_jars()
    assert "REWINDOW_IVY_SETTINGS" in str(caught.value)


def test_a_corrupt_jar_is_fetched_again(pinned, monkeypatch, tmp_path):
    fake_java(monkeypatch, tmp_path, 'echo "$name" > "$to"')
    paths = resolve_jars()
    paths[0].write_text("cut off")
    with refused(
        "jar-not-usable",
        reason=containing("has sha256 117b48570e01"),
    ):
        find_jars()
    assert resolve_jars() == paths


def test_a_missing_jar_states_the_fix(pinned, tmp_path):
    with refused("jar-not-usable", jar=containing("one-1.jar"), reason="is absent"):
        find_jars()


def test_the_environment_sets_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("REWINDOW_CACHE", str(tmp_path / "own"))
    assert cache_dir() == tmp_path / "own" / "jars"
    monkeypatch.delenv("REWINDOW_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "rewindow" / "jars"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path("~/.cache/rewindow/jars").expanduser()


def test_the_pinned_versions_match_the_installed_packages():
    from importlib.metadata import version

    jars = required_jars()
    assert {jar.version for jar in jars} == {DELTA}
    assert version("pyspark").startswith(jars[0].artifact.removeprefix("delta-spark_").split("_")[0] + ".")


def test_every_supported_spark_has_a_jar_and_another_is_refused():
    assert [required_jars(f"4.{minor}.1")[0].artifact for minor in range(3)] == [
        "delta-spark_4.0_2.13",
        "delta-spark_4.1_2.13",
        "delta-spark_4.2_2.13",
    ]
    with refused("spark-version-not-supported", spark="4.3.0", versions="4.0.x, 4.1.x, 4.2.x"):
        required_jars("4.3.0")


@pytest.mark.skipif(shutil.which("java") is None, reason="needs a Java to name")
def test_a_proxy_and_a_mirror_reach_ivy(monkeypatch, tmp_path):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("REWINDOW_IVY_SETTINGS", "/etc/ivysettings.xml")
    command = ivy_command(required_jars()[0], tmp_path)
    assert "-Dhttps.proxyHost=proxy.example" in command
    assert "-Dhttps.proxyPort=3128" in command
    assert command[command.index("-settings") + 1] == "/etc/ivysettings.xml"
    assert "-notransitive" in command
