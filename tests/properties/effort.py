"""How many examples a property tries: few by default, as many as the profile says if it wants a deep search."""

from __future__ import annotations

from hypothesis import settings

DEEP = 1_000


def examples(number: int) -> settings:
    """Return settings with that many examples, unless the profile wants a deep search."""
    wanted = settings().max_examples
    return settings(max_examples=wanted if wanted >= DEEP else number)
