"""Semantic changes of the sources, and whether the tests notice them (`make mutation`)."""
