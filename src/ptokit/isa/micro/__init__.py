"""Micro-operations: the vector registers of A5, one block per operation.

Every module of this folder is found by itself. `MICRO` is the table; the vocabulary is spec.py.
"""

from importlib import import_module
from pkgutil import iter_modules

from ptokit.isa.micro.spec import MICRO, Micro

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["MICRO", "Micro"]
