"""The instruction set: every module of this folder, and in it one block per instruction."""

from ptokit.isa.spec import INSTRUCTIONS, Insn, enumerations

__all__ = ["INSTRUCTIONS", "Insn", "enumerations"]
