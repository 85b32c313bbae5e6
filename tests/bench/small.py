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
    """Run them, each failure beside the others; return 1 if there was one."""
    # A JVM tells its Python workers once, when it starts, where modules are: some benchmarks send functions of this package.
    os.environ["PYTHONPATH"] = str(ROOT)
    failed = []
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for name, small in [(name, pool.submit(run_small, name)) for name in names]:
            error = small.exception()
            if error is not None:
                traceback.print_exception(error)
            if error is not None or small.result() != 0:
                failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(BENCHES)))
