"""Transposition of tiles and convolution layouts."""
