"""Kernels whose times on devices are published, written in ptokit with the same structure."""
