"""Filling: constants and padding."""
