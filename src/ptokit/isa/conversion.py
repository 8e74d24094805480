"""Conversion between element types."""
