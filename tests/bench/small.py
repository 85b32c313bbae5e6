"""`python -m tests.bench.small [NAME ...]`: the short form of each benchmark, two at a time, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.bench.__main__ import BENCHES, SMALL


def main(names: list[str]) -> int:
    """Run them; return 1 if one failed."""
    with ThreadPoolExecutor(2) as pool:
        failed = [name for name, is_right in zip(names, pool.map(run, names), strict=True) if not is_right]
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))


def run(name: str) -> bool:
    """Run one; print what it printed, all of it if it failed."""
    command = [sys.executable, "-m", "tests.bench", name, "--rows", SMALL]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    lines = done.stdout.splitlines()
    print("\n".join(lines[-1:] if done.returncode == 0 else lines), flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(BENCHES)))
