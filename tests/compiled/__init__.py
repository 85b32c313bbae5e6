"""Test with the compiled core: `make compiled`."""
