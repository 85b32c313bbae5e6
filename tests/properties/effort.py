"""The number of examples of a property: few by default, more in a profile for deep searches."""

from __future__ import annotations

from hypothesis import settings

DEEP = 1_000


def examples(number: int) -> settings:
    """Return settings with half this number of examples, or with the number of a deep profile.

    Half keeps the fast tests at about a minute. `HYPOTHESIS_PROFILE=deep` searches for bugs.
    """
    wanted = settings().max_examples
    return settings(max_examples=wanted if wanted >= DEEP else number // 2)
