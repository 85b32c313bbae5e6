"""The health of feeds and jobs as values that every command shows: what waits, is late, on hold or broken, and why."""
