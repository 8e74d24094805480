"""Comparison and selection: packed predicate masks."""
