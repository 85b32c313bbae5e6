"""The operators of the DSL. They are ordinary processors, which use only the public context, as user processors do."""
