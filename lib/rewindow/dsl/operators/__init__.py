"""The DSL's verbs as ordinary processors: they see the public context, like a user's own."""
