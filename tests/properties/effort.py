"""The number of examples of a property: few by default, more in a profile for deep searches."""

from __future__ import annotations

from hypothesis import settings

DEEP = 1_000


def examples(number: int) -> settings:
    """Return settings with a quarter of this number of examples, or with the number of a deep profile.

    The fast tests only have to notice a mistake that most examples show. `HYPOTHESIS_PROFILE=deep` searches for bugs.
    """
    wanted = settings().max_examples
    few = max(number // 4, min(number // 2, 10))
    return settings(max_examples=wanted if wanted >= DEEP else few)
