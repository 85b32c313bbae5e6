"""Test the supported versions, each in a separate environment: `make matrix`."""
