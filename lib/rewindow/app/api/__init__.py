"""The Python API: a project's commands as methods. Notebooks can display their results."""
