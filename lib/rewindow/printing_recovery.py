"""What the commands of recovery say."""

from __future__ import annotations

from rewindow.plan.planner import UpToDate
from rewindow.printing import Printer, describe_result
from rewindow.recovery import Resumed
from rewindow.republish import Republished
from rewindow.runner import RunReport


class RecoveryPrinter(Printer):
    """Prints what was mended."""

    def republished(self, job: str, done: Republished) -> None:
        """Say what was wrong and what became of it."""
        if self.as_json:
            self.json(
                {
                    "damage": dict(done.damage),
                    "republished": list(done.republished),
                    "made_again": list(done.made_again),
                }
            )
            return
        for target, what in done.damage.items():
            self.say(f"{target} {what}.")
        for run in done.made_again:
            self.say(f"Run {run} of {job} was made again, row for row.")
        for target in done.republished:
            self.say(f"{target} is published anew.")
        if not (done.damage or done.republished or done.made_again):
            self.say(f"The tables of {job} are as they were published.")

    def resumed(self, job: str, done: Resumed) -> None:
        """Say what was taken up."""
        result = done.result
        if self.as_json:
            more = describe_result(result) if isinstance(result, RunReport | UpToDate) else {}
            self.json({"resumed": done.run, "attempt": done.attempt} | more)
            return
        if result is None:
            self.say(f"Nothing to resume: no run of {job} was planned and not committed.")
            return
        self.say(f"Run {done.run} of {job} was planned by attempt {done.attempt}, which died.")
        self.ran([result])
