"""The naive twin: scenarios by definition, obvious and slow, with a switch for each decision that makes us differ.

It shares nothing with the engine but the words of a scenario (`tests.oracle.vocabulary`). With a switch at Kafka's
rule it must give what Kafka gave, with ours what the engine gave: that is the proof of a deviation.
"""

from tests.oracle.graph import NotCoveredError
from tests.oracle.groups import play_group
from tests.oracle.rules import SWITCHES, Rules
from tests.oracle.twin import play

__all__ = ["SWITCHES", "NotCoveredError", "Rules", "play", "play_group"]
