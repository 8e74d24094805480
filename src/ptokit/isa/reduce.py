"""Reductions along rows and columns."""
