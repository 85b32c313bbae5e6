"""The queries of Nexmark as topologies."""
