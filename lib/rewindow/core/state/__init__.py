"""What `core.stores` asks for: each kind of store in memory, on a shelf of this machine, and put back after a failure."""
