"""The command line: one module a group of commands, and what they print."""
