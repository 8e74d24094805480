from ptokit.frontend.instruction import Instruction
from ptokit.isa import INSTRUCTIONS

__all__ = [n for n in INSTRUCTIONS if "." not in n]
for _n in __all__:
    globals()[_n] = Instruction(INSTRUCTIONS[_n])
