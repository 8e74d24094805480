"""Tile-scalar instructions: each element meets one number."""
