"""The health of feeds and jobs: what waits, is late, held, silent or broken, and why, as values that every command shows."""
