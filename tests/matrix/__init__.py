"""The supported versions, each tried in an environment of its own: `make matrix`."""
