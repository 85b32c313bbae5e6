"""The naive twin: scenarios by definition, obvious and slow, with a switch for each decision that makes us differ.

It shares nothing with the engine but the words of a scenario (`rewindow.testing.vocabulary`). With a switch at Kafka's
rule it must give what Kafka gave, with ours what the engine gave: that is the proof of a deviation.
"""

from rewindow.testing.naive.graph import NotCoveredError
from rewindow.testing.naive.groups import play_group
from rewindow.testing.naive.rules import SWITCHES, Rules
from rewindow.testing.naive.twin import play

__all__ = ["SWITCHES", "NotCoveredError", "Rules", "play", "play_group"]
