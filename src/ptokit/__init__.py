from ptokit.base.enums import *  # noqa
from ptokit.base.dtypes import *  # noqa
from ptokit.base.tiles import DYNAMIC
from ptokit.frontend.session import device
from ptokit.frontend.types import *  # noqa
from ptokit.frontend.instruction import Instruction
from ptokit.isa import INSTRUCTIONS

for _n, _i in INSTRUCTIONS.items():
    globals()[_n] = Instruction(_i)
