"""What happens in which hour of the year: a pure function of the number of hours, so an interrupted year can go on."""

from __future__ import annotations

import random
from dataclasses import dataclass

DAY, MONTHS, WEEK = 24, 12, 7
SAMPLES, SAMPLED = 14, 3
"""The days on which commands are processes of their own, and for how many hours of such a day."""
OLD_HOURS = 12
"""For how long a year is made by the code of an earlier version, before the upgrade.

Each of its commands is a process, so half a year would take eight hours. A shorter year can have its upgrade halfway, with
`--upgraded`. Until then it has no other events: they are commands of this version, whose rows an earlier one need not read.
"""
LAND, RUN, GC = "land", "run", "gc"


@dataclass(frozen=True, slots=True)
class Hour:
    """The events of an hour. ``killed``: commands that are killed first; ``after``: what follows the hour's landing and run."""

    is_sample: bool = False
    is_old: bool = False
    is_doubled: bool = False
    killed: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Year:
    """A year of so many hours. A shorter one has the same events, closer together.

    ``upgraded`` is the hour whose landing and run are the first after the upgrade.
    """

    hours: int = 8_760
    day: int = DAY
    samples: int = SAMPLES
    upgraded: int = OLD_HOURS

    @property
    def days(self) -> int:
        """The number of whole days."""
        return self.hours // self.day

    @property
    def is_upgraded_late(self) -> bool:
        """Whether the upgrade is later than in a whole year."""
        return self.upgraded > OLD_HOURS

    def of(self, hour: int) -> Hour:
        """Return the events of an hour, which is counted from 0."""
        day, of_day = divmod(hour, self.day)
        rng = random.Random(f"year {hour}")
        is_end = of_day == self.day - 1
        is_sample = day in self._sampled() and of_day >= self.day - SAMPLED
        is_old = hour < self.upgraded
        return Hour(
            is_sample=is_sample,
            is_old=is_old,
            is_doubled=not (is_old or is_sample) and self._is_chosen(rng),
            killed=() if is_old or is_sample or not self._is_chosen(rng) else (rng.choice((LAND, RUN)),),
            after=(
                *(["upgrade"] if hour == self.upgraded - 1 else []),
                *(self._after(day, rng) if is_end and not is_old else ()),
            ),
        )

    def _after(self, day: int, rng: random.Random) -> list[str]:
        month = max(2, self.days // MONTHS)
        found = []
        if day % month == month - 1:
            found.append("rewind")
        if day == self.days * 3 // 5:
            found.append("branch")
        if day not in self._sampled() and rng.random() < 4 / month:
            found.append("kill gc")
        return [*found, "gc"]

    def _is_chosen(self, rng: random.Random) -> bool:
        """Return whether something happens that happens every few days."""
        return rng.random() < 1 / (6 * self.day)

    def _sampled(self) -> set[int]:
        some = min(self.samples, self.days)
        return {round(number * (self.days - 1) / max(1, some - 1)) for number in range(some)}
