"""The cube: matrix products."""
