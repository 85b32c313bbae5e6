"""Explain a row of an output, or why there is none yet."""
