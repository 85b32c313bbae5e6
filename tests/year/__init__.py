"""A year of hourly landings and runs in fast motion, and odd sizes. `python -m tests.year`."""
