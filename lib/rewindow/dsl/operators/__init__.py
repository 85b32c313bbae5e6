"""The operators of the DSL: ordinary processors, which use only the public context, as user processors do."""
