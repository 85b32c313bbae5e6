"""New scenarios, played on the real Kafka Streams 4.3.1 and on rewindow, and compared.

    python -m tests.conformance.oracle [--seed N] [--count N] [--like TEXT] [--keep FILE]

Needs a JDK and Maven, which fetches the jars once. The recorded scenarios are given other windows, bounds and inputs at
random; whatever rewindow does otherwise than Kafka must be proven to be one of the design's decisions, as for the
recorded ones. A seed repeats its scenarios.
"""
