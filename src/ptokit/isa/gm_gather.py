"""Gather and scatter through global memory."""
