"""The tables that hold inputs, outputs and state: two adapters of one protocol, `delta` and `governed`."""
