"""`PromoteOperator`: compare a branch with the published tables, ask people, and promote the branch if they approve."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from airflow.providers.standard.operators.hitl import ApprovalOperator, HITLOperator
from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from rewindow.airflow.dag_run import is_retry
from rewindow.airflow.operators import RewindowOperator
from rewindow.contracts.exit_codes import DIFFERENT
from rewindow.errors import visible

_MOST_CHARACTERS: Final = 10_000
"""Maximum length of the differences in a question, which people read in a browser."""
_COUNTS: Final = ("equal", "different", "only_first", "only_second")


class PromoteOperator(RewindowOperator, ApprovalOperator):
    """Compares a branch with the published tables, asks for approval, and promotes the branch. Asks nobody if nothing differs.

    This is one task, because users who may trigger a DAG may also mark its tasks as successful, clear them and edit what they
    have stored. So no other task decides whether the branch is promoted, and the question has nothing that another task has
    stored.

    Args:
        job: The job.
        branch: The branch to promote.
        assigned_users: The users who may approve, as for Airflow's `ApprovalOperator`. Default: all who may edit the DAG's runs.
        execution_timeout: The time limit of a command, not of the people.

    The other arguments are those of `RewindowOperator`. If `promote` ends with a code that is retried, the task waits in the
    triggerer and repeats it without another question. If the task is cleared or loses its worker, it compares and asks again.
    """

    def __init__(
        self, *, job: str, branch: str, execution_timeout: timedelta | None = None, retries: int = 5, **kwargs: Any
    ) -> None:
        super().__init__(
            arguments=["promote", job, branch],
            subject=f"Publish the backfill of {job}?",
            execution_timeout=None,  # Airflow would use it as the time in which people must answer
            retries=retries,
            **kwargs,
        )
        self.response_timeout = None
        self.execution_timeout = execution_timeout

    def execute(self, context: Any) -> Any:
        """Compare, and wait for an answer if anything differs."""
        promotes = _, job, branch = self.arguments
        self.arguments = ["diff", job, "main", branch]
        found = self._run(context, accepts={DIFFERENT})
        self.arguments = promotes
        if found.pop("exit_code") != DIFFERENT:
            # An earlier try may have ended after it had promoted the branch. Then the events of its assets are still to be sent.
            if is_retry(context):
                self.log.info("Nothing differs from the published tables")
                return found
            raise AirflowSkipException("Nothing differs from the published tables, so there is nothing to publish")
        report = self._write_report({"job": job, "branch": branch, "runs": ["all"]})
        self.body = question(job, branch, found, report)
        return ApprovalOperator.execute(self, context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Promote the branch if the answer is to approve it."""
        answer = HITLOperator.execute_complete(self, context, event)
        if answer["chosen_options"] != [self.APPROVE]:
            raise AirflowSkipException("The branch was rejected, so it is not published")
        self.log.info("Approved by %s", visible((answer["responded_by_user"] or {}).get("name")))
        return self.promote(context)

    def promote(self, context: Any, event: Any = None, tries: int = 0) -> dict[str, Any]:
        """Promote the branch, after ``tries`` attempts that failed."""
        del event
        try:
            return RewindowOperator.execute(self, context)
        except AirflowFailException:
            raise
        except AirflowException as error:
            if tries >= self.retries:
                raise AirflowFailException(str(error)) from error
            # A retry of the task would ask again.
            delay = self.retry_delay * 2**tries
            self.log.warning("%s. The next attempt is in %s", error, delay)
            self.defer(trigger=TimeDeltaTrigger(delay), method_name="promote", kwargs={"tries": tries + 1})
            raise  # unreachable: `defer` raises


def question(job: str, branch: str, found: Mapping[str, Any], report: str | None) -> str:
    """Return the text of an approval, in Markdown. ``found``: what `diff` printed. ``report``: the address of the report."""
    counts = [(name, of) for name, of in found.items() if isinstance(of, Mapping)]
    rows = [f"| {visible(name)} | {' | '.join(str(of.get(count)) for count in _COUNTS)} |" for name, of in counts]
    source = f"The report {report} has" if report else f"`rewindow report {job} --branch {branch} --diff main` writes"
    # JSON escapes line breaks, so data cannot end the block of code.
    text = json.dumps(found, indent=2)
    more = " ..." if len(text) > _MOST_CHARACTERS else ""
    lines = (
        f"Branch **{branch}** of job **{job}** differs from the published tables:",
        "",
        "| output | equal | different | only published | only in the branch |",
        "| --- | --- | --- | --- | --- |",
        *rows,
        "",
        f"{source} this comparison as a page, with samples and what changed.",
        "",
        "*Approve* publishes the branch, in one commit per table. *Reject* changes nothing.",
        "",
        "First differences:",
        "",
        "```json",
        f"{text[:_MOST_CHARACTERS]}{more}",
        "```",
    )
    return "\n".join((*lines, ""))
