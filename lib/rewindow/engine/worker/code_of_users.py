"""Run code of users in the process of the command: its prints go to stderr, and it cannot end the command."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import NoReturn

from rewindow.engine.worker.failures import translate_text
from rewindow.errors import RewindowError


@contextmanager
def as_in_a_worker() -> Iterator[None]:
    """Give user code no more rights than in a worker: stdout belongs to the command's own output."""
    leave = os._exit
    os._exit = _refuse
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (RewindowError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise translate_text(traceback.format_exc()) from error
    finally:
        os._exit = leave


def _refuse(status: int) -> NoReturn:
    """Replace `os._exit`: ending the process here would look like a successful run."""
    message = f"os._exit({status})"
    raise SystemExit(message)
