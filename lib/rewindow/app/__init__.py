"""The application: wires the layers together and talks to people."""
