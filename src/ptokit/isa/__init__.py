"""The instruction set: every module of this folder, and in it one block per instruction."""

from importlib import import_module
from pkgutil import iter_modules

from ptokit.isa.spec import INSTRUCTIONS, Insn, enumerations

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["INSTRUCTIONS", "Insn", "enumerations"]
