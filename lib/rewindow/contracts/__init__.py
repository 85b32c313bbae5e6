"""Value types that cross the boundaries between planning, execution and tables."""
