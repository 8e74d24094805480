"""Convolution as a matrix product: image to columns."""
