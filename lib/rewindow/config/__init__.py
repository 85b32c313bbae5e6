"""The configuration of a project: feeds, jobs and targets, read from YAML into frozen values."""
