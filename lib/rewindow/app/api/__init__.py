"""The Python API: a project's commands as methods, whose results notebooks draw."""
