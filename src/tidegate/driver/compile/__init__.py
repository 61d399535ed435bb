"""Compiles a described flow to operators: everything that stays the same for the life of a query."""
