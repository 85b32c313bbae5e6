"""The value types that cross boundaries between planning, execution and tables."""
