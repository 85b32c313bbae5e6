"""A hash seed for replays, so that code that depends on the order of a set shows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_NAME, HASH_SEED = "PYTHONHASHSEED", "20130101"
"""A seed other than 0, the default of Spark's workers."""


@contextmanager
def other_hash_seed() -> Iterator[None]:
    """Let Spark's workers hash texts in another way than in a run, if Spark starts within this block."""
    before = os.environ.get(_NAME)
    os.environ[_NAME] = HASH_SEED
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NAME]
        else:
            os.environ[_NAME] = before
