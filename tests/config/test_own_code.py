"""A copied environment, which would run the code of the tree that it was made for, is refused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rewindow.app.version import check_own_code
from rewindow.errors import ConfigError

ROOT = Path(__file__).parents[2]


def tree(root: Path) -> Path:
    (root / "lib/rewindow").mkdir(parents=True)
    (root / "lib/rewindow/__init__.py").touch()
    (root / "pyproject.toml").touch()
    return root


def test_the_code_of_another_tree_is_refused_by_name(tmp_path: Path) -> None:
    old, new = tree(tmp_path / "old"), tree(tmp_path / "new")
    with pytest.raises(ConfigError, match=f"this command runs the code of {old}: .*make clean setup"):
        check_own_code(new, str(old / "lib/rewindow/__init__.py"))


def test_other_projects_and_installed_packages_are_accepted(tmp_path: Path) -> None:
    old, new = tree(tmp_path / "old"), tree(tmp_path / "new")
    installed = tmp_path / "site-packages/rewindow/__init__.py"
    check_own_code(tmp_path, str(old / "lib/rewindow/__init__.py"))
    check_own_code(new, str(installed))
    check_own_code(new, str(new / "lib/rewindow/__init__.py"))
    (tmp_path / "link").symlink_to(new)
    check_own_code(tmp_path / "link", str(new / "lib/rewindow/__init__.py"))


def test_make_refuses_a_copied_environment(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / ".venv").mkdir()
    for name in ("requirements-run.lock", "requirements.lock", "pyproject.toml", ".venv/.run", ".venv/.locked"):
        (tmp_path / name).touch()
    (tmp_path / ".venv/.package").write_text("/somewhere/else\n")
    command = ["make", "-C", str(tmp_path), "env", "PYTHON=true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert ".venv was made in /somewhere/else and runs the code there: make clean setup" in done.stderr
    (tmp_path / ".venv/.package").write_text(f"{tmp_path}\n")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
