"""Python of users, compiled as Python itself would compile it.

`compile` hands the `from __future__` imports of its caller on to what it compiles, unless it is
told not to: a file of a user would mean something else here than when Python runs it.
"""

from __future__ import annotations
import __future__

import ast
from functools import reduce
from operator import or_
from types import CodeType, FunctionType

_FUTURES = reduce(or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))


def compiled(program: str | ast.Module, file: str, of: FunctionType | None = None) -> CodeType:
    """The code of a program; of a piece of one, under the `__future__` imports of that function."""
    flags = 0 if of is None else of.__code__.co_flags & _FUTURES
    return compile(program, file, "exec", flags, dont_inherit=True)
