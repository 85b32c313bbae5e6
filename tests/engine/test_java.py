"""Which Java is chosen, and the message that says what to install."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rewindow.engine.spark.jars import Java, check_launcher, find_java
from tests.refusals import containing, refused

if TYPE_CHECKING:
    from pathlib import Path

MODULES = "java.base jdk.incubator.vector"


def jdk(root: Path, name: str, version: str, *, modules: str = MODULES, release: bool = True) -> Path:
    home = root / name
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    java.chmod(0o755)
    if release:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


def test_java_home_comes_first(tmp_path):
    home, other = jdk(tmp_path, "home", "17.0.15"), jdk(tmp_path, "path", "21.0.2")
    environ = {"JAVA_HOME": str(home), "PATH": str(other / "bin")}
    assert find_java(environ, installed=()) == Java(home, 17)


def test_java_on_path_comes_second(tmp_path):
    other = jdk(tmp_path, "path", "21.0.2")
    jdk(tmp_path / "jvm", "java-17", "17.0.15")
    found = find_java({"PATH": str(other / "bin")}, installed=[f"{tmp_path}/jvm/*"])
    assert found == Java(other, 21)


def test_a_symlink_on_path_resolves_to_its_home(tmp_path):
    home = jdk(tmp_path, "real", "17.0.15")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}, installed=()) == Java(home, 17)


def test_the_newest_usable_installed_java_comes_third(tmp_path):
    for name, version in (("a-17", "17.0.15"), ("b-21", "21.0.2"), ("c-25", "25.0.3"), ("d-8", "1.8.0_412")):
        jdk(tmp_path / "jvm", name, version)
    assert find_java({"PATH": ""}, installed=[f"{tmp_path}/jvm/*"]) == Java(tmp_path / "jvm" / "b-21", 21)


def test_another_version_in_java_home_is_skipped(tmp_path):
    new, usable = jdk(tmp_path, "new", "25.0.3"), jdk(tmp_path, "usable", "17.0.15")
    environ = {"JAVA_HOME": str(new), "PATH": str(usable / "bin")}
    assert find_java(environ, installed=()) == Java(usable, 17)


def test_without_a_release_file_java_reports_its_version(tmp_path):
    home = jdk(tmp_path, "home", "21.0.2", release=False)
    assert find_java({"JAVA_HOME": str(home), "PATH": ""}, installed=()) == Java(home, 21)


def test_a_runtime_without_the_module_that_spark_requires_is_skipped(tmp_path):
    home = jdk(tmp_path, "jlinked", "17.0.15", modules="java.base")
    with refused("java-not-found"):
        find_java({"JAVA_HOME": str(home), "PATH": ""}, installed=())


@pytest.mark.parametrize("environ", [{}, {"JAVA_HOME": ""}, {"JAVA_HOME": "/nowhere"}])
def test_without_java_it_is_asked_for(tmp_path, environ):
    with refused("java-not-found", found=""):
        find_java({"PATH": str(tmp_path), **environ}, installed=[f"{tmp_path}/none/*"])


def test_an_unusable_java_is_named(tmp_path):
    home = jdk(tmp_path, "new", "25.0.3")
    with refused("java-not-found", found=containing("; found only 25 in")):
        find_java({"JAVA_HOME": str(home), "PATH": ""}, installed=())


def test_the_preflight_needs_no_installed_package():
    """`make setup` checks for Java before the environment exists."""
    code = "import sys; sys.path.insert(0, 'lib'); from rewindow.engine.spark.jars import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode in {0, 78}, done.stderr
    assert (done.stdout + done.stderr).count("\n") == 1


@pytest.mark.parametrize("path", ["", "/nowhere"])
def test_a_path_without_the_programs_of_sparks_launcher_is_refused_by_name(path: str) -> None:
    with refused("launcher-program-missing", programs="bash and dirname"):
        check_launcher({"PATH": path})
    check_launcher({"PATH": "/usr/bin:/bin"})
