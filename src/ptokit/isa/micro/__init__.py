"""Micro-operations: the vector registers of A5, one block per operation.

Every module of this folder is found by itself. `MICRO` is the table; the vocabulary is spec.py.
"""

from ptokit.isa.micro.spec import MICRO, Micro

__all__ = ["MICRO", "Micro"]
