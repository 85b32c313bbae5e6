"""How two branches of a job differ, and what replays of runs proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewindow.app.api.show import joined, lines, table
from rewindow.app.branch_results import Compared
from rewindow.app.sentences import as_assignments, compared_line, compared_rows, notes_on, shown_rows, verified_lines
from rewindow.control.plan.explain_holds import Hold
from rewindow.control.verify import Verified
from rewindow.tables.shared.diff import TableDiff


@dataclass(frozen=True, slots=True, repr=False)
class Diff:
    """How the outputs of two branches differ, key by key, over the epochs that both replayed since they diverged."""

    job: str
    compared: Compared
    """What was compared: ``first`` and ``second``, the branches; ``shared``, the last run that both have; ``epochs``, a range of
    numbers, which is empty if nothing was compared."""
    code: tuple[str, ...]
    """How the code of the branches' last runs differs; empty if the outputs are equal."""

    @property
    def are_equal(self) -> bool:
        """Whether no output differs. False if a run on hold left nothing to compare, where `rewindow diff` ends with 79."""
        return self.compared.are_equal

    @property
    def on_hold(self) -> Sequence[Hold]:
        """The run on hold of each branch that has one, as JSON values. Its rows and those of later runs were not compared."""
        return self.compared.on_hold

    @property
    def outputs(self) -> Mapping[str, TableDiff]:
        """By output: the numbers of keys that are equal, different, or on one branch only, and samples of those that differ."""
        return self.compared.diffs

    def __repr__(self) -> str:
        return "\n".join([compared_line(self.compared), *(as_assignments(row) for row in compared_rows(self.compared))])

    def _repr_html_(self) -> str:
        found = self.compared
        if not found.extent:
            return lines([compared_line(found)])
        samples = [
            {
                "output": output,
                "key": as_assignments(key, key),
                found.first: shown_rows(ours),
                found.second: shown_rows(theirs),
            }
            for output, one in found.diffs.items()
            for key, ours, theirs in one.samples
        ]
        changed = [f"{found.first} and {found.second} ran different code: {'; '.join(self.code)}"] if self.code else []
        cut = [f"{output}: {told}" for output, one in found.diffs.items() for told in notes_on(one, "samples={}")]
        shown = [table("Keys that differ", samples)] if samples else []
        return joined(
            lines([compared_line(found)]), table("Keys", compared_rows(found)), *shown, lines([*cut, *changed])
        )


@dataclass(frozen=True, slots=True, repr=False)
class Verification:
    """Runs that were replayed in another layout, and the rows that the replay made differently."""

    job: str
    checked: tuple[Verified, ...]

    @property
    def is_reproduced(self) -> bool:
        """Whether every replay made the same rows."""
        return not any(one.differences for one in self.checked)

    def __repr__(self) -> str:
        return "\n".join(verified_lines(self.job, self.checked))

    def _repr_html_(self) -> str:
        return lines(verified_lines(self.job, self.checked))
