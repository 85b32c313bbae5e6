"""The tests, as a package: `python -m tests.conformance` runs from the root of the repository."""
