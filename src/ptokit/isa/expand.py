"""Broadcasts of a row or a column over a tile."""
