"""The fault matrix: nothing is lost or doubled, and the tests would notice if it were (`python -m tests.crash`)."""
