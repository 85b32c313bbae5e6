"""`python -m tests.bench.small [NAME ...]`: the short form of each benchmark, in two processes that take one after the other.

A benchmark's first Spark job costs a JVM more than the small form of the benchmark does, so those of a process share its JVM.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor

from tests.bench.__main__ import BENCHES, run_small
from tests.bench.measure import ROOT


def main(names: list[str]) -> int:
    """Run them; return 1 if one failed."""
    # A JVM tells its Python workers once, when it starts, where modules are: some benchmarks send functions of this package.
    os.environ["PYTHONPATH"] = str(ROOT)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        failed = [name for name, is_right in zip(names, pool.map(run, names), strict=True) if not is_right]
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))


def run(name: str) -> bool:
    """Run one; print why it failed, and let the others run."""
    try:
        return run_small(name) == 0
    except Exception:
        print(f"{name} failed", flush=True)
        traceback.print_exc()
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(BENCHES)))
