"""The configuration of a project: feeds, jobs and targets, from YAML to frozen values."""
