"""Transfers between global memory and tiles."""
