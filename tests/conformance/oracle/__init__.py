"""Play new scenarios on the real Kafka Streams 4.4.0 and on rewindow, and compare the results.

    python -m tests.conformance.oracle [--seed N] [--count N] [--like TEXT] [--keep FILE]

Needs a JDK and Maven, which fetches the jars once. New scenarios are recorded ones with random windows, bounds and inputs.
As for the recorded ones, every difference from Kafka must be proven to follow from a decision (D-number). The same seed gives
the same scenarios. What deviates by D21 is played on Kafka again with a task for each sub-topology, and must not deviate then.
The recorded scenarios of this repository are recorded again, too, and must not have changed.
"""
