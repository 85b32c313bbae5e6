"""Subclasses in Python of compiled classes (ADR-114). Without compilation, this does nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

Kind = TypeVar("Kind", bound=type[Any])

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_: Any) -> Callable[[Kind], Kind]:
        """Return the class as it is. Only the compiler reads what its decorators say."""
        return lambda cls: cls


__all__ = ["mypyc_attr"]
