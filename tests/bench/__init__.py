"""Benchmarks. They are commands, not tests: `python -m tests.bench NAME`."""
