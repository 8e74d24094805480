"""Gathering and scattering inside a tile."""
