"""Partial operations: tiles whose valid regions differ."""
