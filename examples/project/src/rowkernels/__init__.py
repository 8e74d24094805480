"""Kernels over the rows of a matrix."""

from rowkernels.softmax import scaled_softmax, softmax

__all__ = ["scaled_softmax", "softmax"]
