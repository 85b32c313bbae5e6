"""How many examples a property tries: few by default, as many as the profile says if it wants a deep search."""

from __future__ import annotations

from hypothesis import settings

DEEP = 1_000


def examples(number: int) -> settings:
    """Return settings with half that many examples, or as many as a profile wants that searches deep.

    Half, so that the fast part of the tests stays about a minute; `HYPOTHESIS_PROFILE=deep` is what looks for bugs.
    """
    wanted = settings().max_examples
    return settings(max_examples=wanted if wanted >= DEEP else number // 2)
