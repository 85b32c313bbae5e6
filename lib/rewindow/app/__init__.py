"""The application: it connects the layers and talks to people."""
