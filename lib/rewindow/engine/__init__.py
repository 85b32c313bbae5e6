"""Execution: what runs next to the data (`worker`) and what schedules it (`spark`)."""
