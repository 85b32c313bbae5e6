"""The exceptions with which vectorized execution hands work to record execution."""

from __future__ import annotations


class NotVectorizableError(Exception):
    """A sub-topology cannot run in vectorized execution. The text is the reason, for `explain`."""


class UnfitError(Exception):
    """A task's values exceed what the kernels compute exactly. Record execution reruns the task from its beginning."""
