"""Generators, histograms, printing and scalar access."""
