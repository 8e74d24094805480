"""Moves between memory spaces and layouts."""
