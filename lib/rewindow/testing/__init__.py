"""Test a topology without Spark, in milliseconds: the real tasks, fed by hand. Shipped for users' own tests."""

from rewindow.testing.driver import TopologyTestDriver

__all__ = ["TopologyTestDriver"]
