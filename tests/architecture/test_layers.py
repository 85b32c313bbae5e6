"""Violations of the architecture fail: layers, purity, lazy imports, size. Each rule is also tested on wrong snippets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.rules import (
    FLUENT,
    LAYERS,
    MODULES,
    PURE,
    connect_unsafe,
    import_cycles,
    imports_of_cli,
    impurities,
    is_pure,
    layer_of,
    wrong_imports,
)

LIB = Path(__file__).resolve().parents[2] / "lib" / "rewindow"
FILES = {path.relative_to(LIB).as_posix(): path for path in sorted(LIB.rglob("*.py"))}
LINES = 500
# Modules with more than LINES lines. Their sizes may only go down.
LARGER: dict[str, int] = {}
# Packages that `import rewindow` does not load.
LAZY = ("pyspark", "py4j", "deltalake", "delta", "pyarrow", "pandas", "numpy", "airflow", "pydantic", "yaml", "typer")


def read(path: str) -> str:
    return FILES[path].read_text(encoding="utf-8")


def test_every_layer_imports_only_what_the_table_allows():
    wrong = [line for path in FILES for line in wrong_imports(path, read(path))]
    assert not wrong, "\n".join(wrong)


def test_the_pure_layers_use_no_clock_randomness_io_or_hash_order():
    pure = [path for path in FILES if is_pure(path)]
    assert len(pure) > len(PURE)
    wrong = [line for path in pure for line in impurities(path, read(path))]
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other_at_run_time():
    assert import_cycles({path: read(path) for path in FILES}, with_types=False) == []


def test_only_fluent_modules_import_each_others_types():
    assert import_cycles({path: read(path) for path in FILES}, with_types=True) == [sorted(FLUENT)]


def test_the_rest_of_app_does_not_depend_on_its_command_line():
    wrong = [line for path in FILES for line in imports_of_cli(path, read(path))]
    assert not wrong, "\n".join(wrong)


def test_library_code_is_safe_for_spark_connect():
    wrong = [line for path in FILES if path != "engine/spark/session.py" for line in connect_unsafe(path, read(path))]
    assert not wrong, "\n".join(wrong)


def test_modules_stay_small():
    sizes = {path: len(read(path).splitlines()) for path in FILES}
    wrong = [
        f"{path}: {lines} lines, {LARGER.get(path, LINES)} allowed: split the module"
        for path, lines in sizes.items()
        if lines > LARGER.get(path, LINES)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_ratchet_of_sizes_goes_down():
    slack = [path for path, lines in LARGER.items() if path not in FILES or len(read(path).splitlines()) < lines]
    assert not slack, f"update LARGER: these modules are smaller or gone: {slack}"


def test_importing_rewindow_is_cheap():
    code = f"import sys, rewindow; print(*[name for name in {LAZY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_public_names_exist():
    import rewindow

    assert sorted(rewindow.__all__) == list(rewindow.__all__)
    assert all(hasattr(rewindow, name) for name in rewindow.__all__)


def test_only_known_folders_hold_code():
    without = [path for path in FILES if layer_of(path) is None and not path.endswith("__init__.py")]
    assert not without, f"these belong to no folder of the table: {without}"


def test_the_package_root_holds_nothing_else():
    assert {path for path in FILES if "/" not in path} == {f"{name}.py" for name in MODULES}


def test_there_are_at_most_sixteen_folders():
    assert len(set(LAYERS) - {"public", "errors"}) <= 16


MIRRORED = "tables/shared/", "tables/delta/", "tables/governed/"


def test_the_name_of_a_file_says_where_something_is():
    """Only the table adapters have files of the same name, for the same thing in files and in a catalog."""
    names: dict[str, list[str]] = {}
    for path in FILES:
        if not path.startswith(MIRRORED) and not path.endswith("__init__.py"):
            names.setdefault(path.rpartition("/")[2], []).append(path)
    assert [paths for paths in names.values() if len(paths) > 1] == []


WRONG_IMPORTS = {
    "streams/x.py": [
        "import pyarrow",
        "from rewindow.control.plan.spec import RunSpec",
        "from rewindow.dsl import builder",
    ],
    "dsl/x.py": ["from rewindow.engine.spark import session", "import yaml", "import numpy as np"],
    "contracts/x.py": ["from rewindow.engine.worker import inline", "from rewindow.dsl import builder"],
    "control/plan/x.py": [
        "import deltalake",
        "from rewindow.dsl import builder",
        "import rewindow.tables.delta.ledger",
    ],
    "control/run.py": [
        "from rewindow.engine.spark.spark_engine import SparkEngine",
        "from rewindow.app.cli.entry import app",
    ],
    "engine/worker/x.py": ["import pyspark", "import polars", "from rewindow.engine.spark import session"],
    "engine/spark/x.py": [
        "from rewindow.tables.delta.ledger import Ledger",
        "from rewindow.control.plan import planner",
    ],
    "tables/shared/x.py": ["import deltalake", "import pyspark", "from rewindow.tables.delta import commit"],
    "tables/governed/x.py": ["import deltalake", "from rewindow.tables.delta import commit"],
    "tables/delta/x.py": [
        "from rewindow.tables.governed import commit",
        "import pyspark",
        "def f():\n    from rewindow.engine.worker import inline",
    ],
    "testing/x.py": ["import pyspark", "from rewindow.tables.delta import commit"],
    "config/load.py": ["import pyspark", "from rewindow.control.run import steps"],
    "airflow/x.py": ["import pyspark", "from rewindow.engine.spark import session"],
    "errors.py": ["from rewindow.streams import record"],
    "stray.py": [""],
    "tables/stray.py": [""],
}
RIGHT_IMPORTS = {
    "streams/x.py": [
        "import heapq",
        "from rewindow.streams.record import Record",
        "from rewindow.errors import DataError",
    ],
    "dsl/operators/x.py": ["from rewindow.streams.processor import Processor"],
    "engine/spark/x.py": ["import pyarrow as pa", "from pyspark.sql import functions as F"],
    "tables/delta/x.py": ["from rewindow.control.plan.spec import RunSpec", "from deltalake import DeltaTable"],
    "app/cli/entry.py": ["from rewindow.engine.spark.session import local_session", "import typer"],
}


@pytest.mark.parametrize(("path", "source"), [(path, one) for path, many in WRONG_IMPORTS.items() for one in many])
def test_a_wrong_import_is_named(path, source):
    found = wrong_imports(path, source)
    assert len(found) == 1
    assert found[0].startswith(f"{path}:")


@pytest.mark.parametrize(("path", "source"), [(path, one) for path, many in RIGHT_IMPORTS.items() for one in many])
def test_a_right_import_passes(path, source):
    assert wrong_imports(path, source) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from random import choice",
        "import os.path",
        "from uuid import uuid4",
        "from datetime import datetime\nx = datetime.now()",
        "import datetime\nx = datetime.datetime.now(tz=None)",
        "x = hash('key')",
        "for x in {1, 2}:\n    pass",
        "for x in set(y):\n    pass",
        "x = [y for y in frozenset(z)]",
        "x = list({1, 2})",
        "x = tuple(set(y))",
        "x = ','.join({y for y in z})",
        "x = [*set(y)]",
        "x = dict.fromkeys(set(y))",
        "for x in set(y) - z:\n    pass",
        "late: set[str] = make()\nfor x in late:\n    pass",
        "late = set()\nx = [y for y in late]",
        "def f(late: frozenset[str]):\n    return list(late)",
        "class C:\n    def f(self):\n        self.late = set()\n        for x in self.late:\n            pass",
        "late = {1}\nx = late.pop()",
    ],
)
def test_an_impurity_is_named(source):
    found = impurities("streams/x.py", source)
    assert len(found) == 1
    assert found[0].startswith("streams/x.py:")


@pytest.mark.parametrize(
    "source",
    [
        "x = sorted(set(y))",
        "x = len({1, 2})",
        "x = 1 in {1, 2}",
        "x = {1, 2} | {3}",
        "for x in sorted({1, 2}):\n    pass",
        "for x in {1: 2}:\n    pass",
        "from datetime import timedelta\nx = timedelta(1)",
        "x = {y for y in [1, 2]}",
        "late = []\nx = late.pop()",
    ],
)
def test_pure_code_passes(source):
    assert impurities("streams/x.py", source) == []


ONE_IMPORTS_TWO = "from rewindow.dsl.two import Two"
CYCLIC = {
    "module": "from rewindow.dsl.one import One",
    "the module itself": "from rewindow.dsl import one",
    "plain import": "import rewindow.dsl.one",
    "function": "def f():\n    from rewindow.dsl.one import One",
    "else branch": "if TYPE_CHECKING:\n    pass\nelse:\n    from rewindow.dsl.one import One",
}


@pytest.mark.parametrize("source", CYCLIC.values(), ids=CYCLIC)
def test_an_import_cycle_is_named(source):
    sources = {"dsl/one.py": ONE_IMPORTS_TWO, "dsl/two.py": source, "dsl/three.py": ONE_IMPORTS_TWO}
    for with_types in (False, True):
        assert import_cycles(sources, with_types=with_types) == [["dsl/one", "dsl/two"]]


def test_a_cycle_of_types_is_one_only_with_types():
    source = "if TYPE_CHECKING:\n    from rewindow.dsl.one import One"
    sources = {"dsl/one.py": ONE_IMPORTS_TWO, "dsl/two.py": source}
    assert import_cycles(sources, with_types=False) == []
    assert import_cycles(sources, with_types=True) == [["dsl/one", "dsl/two"]]


def test_cycles_that_do_not_meet_are_two():
    sources = {
        f"streams/{one}.py": f"from rewindow.streams import {other}"
        for one, other in ("ab", "bc", "ca", "de", "ed", "fa")
    }
    assert import_cycles(sources, with_types=False) == [
        ["streams/a", "streams/b", "streams/c"],
        ["streams/d", "streams/e"],
    ]


@pytest.mark.parametrize(
    ("path", "source", "count"),
    [
        ("app/branches.py", "from rewindow.app.cli.printing_runs import rows_of", 1),
        ("app/api/job.py", "def f():\n    from rewindow.app.cli import options", 1),
        ("app/branches.py", "from rewindow.app.result_lines import landed_lines", 0),
        ("app/cli/entry.py", "from rewindow.app.cli.printing_runs import summarise", 0),
        ("__main__.py", "from rewindow.app.cli.entry import main", 0),
    ],
)
def test_an_import_of_the_command_line_is_named(path, source, count):
    assert len(imports_of_cli(path, source)) == count


@pytest.mark.parametrize("source", ["spark._jvm.x()", "frame.rdd.map(f)", "spark.sparkContext.broadcast(1)"])
def test_features_missing_in_spark_connect_are_named(source):
    assert connect_unsafe("engine/spark/x.py", source)[0].startswith("engine/spark/x.py:1: ")
