"""The version of rewindow that is running, and a check: in a source tree of rewindow, only its own code may run."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from rewindow.errors import ConfigError

_PACKAGE = Path("lib", "rewindow", "__init__.py")
RUNNING = str(Path(__file__).parents[1] / "__init__.py")
"""The file of the package whose code is running."""
_WITH = ("pyspark", "delta-spark", "deltalake", "pyarrow")


def running_version() -> str:
    """Return the version of the code that is running. The installed version may differ."""
    version: str = sys.modules["rewindow"].__version__
    return version


def check_own_code(root: Path, running: str = RUNNING) -> None:
    """Raise `ConfigError` (78) if the project is a source tree of rewindow, but the code of another tree is running.

    ``running``: the file of the running package.
    """
    own, used = root / _PACKAGE, Path(running).resolve()
    other = used.parents[len(_PACKAGE.parts) - 1]
    is_tree = used == other / _PACKAGE and (other / "pyproject.toml").is_file()
    if not own.is_file() or not is_tree or own.resolve() == used:
        return
    raise ConfigError(
        "environment-of-other-tree",
        "{project} has rewindow's code in lib/, but this command runs the code of {other}: its Python environment "
        "was made there, then copied or shared. Make an environment here with `make clean setup`, or set "
        "PYTHONPATH to this lib/",
        project=root,
        other=other,
    )


def version_lines() -> list[str]:
    """Return lines with the versions of rewindow and of the software it works with, and where rewindow is installed."""
    import platform  # noqa: PLC0415 - other commands do not need it
    from importlib import metadata  # noqa: PLC0415

    versions = []
    for name in _WITH:
        with suppress(metadata.PackageNotFoundError):
            versions.append(f"{name} {metadata.version(name)}")
    return [
        f"rewindow {running_version()} ({Path(RUNNING).parent})",
        ", ".join([f"Python {platform.python_version()}", *versions]),
    ]
