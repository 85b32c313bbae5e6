"""The application: it connects the layers, and presents results to people."""
