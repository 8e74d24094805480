"""Quantisation and dequantisation."""
