"""Sorting and merging of value-index records."""
