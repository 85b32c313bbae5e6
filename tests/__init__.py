"""The tests. They are a package so that `python -m tests.conformance` runs from the root of the repository."""
