"""What compiled code calls beside its own: from that it can be known to do the same each time."""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path

from ptokit.base.patterns import regex
from ptokit.native.lines import sections_of

_SYMBOL = struct.Struct("<IBBHQQ")
_UNDEFINED = 0  # the section of a symbol that another library has
# Exceptions, type information, memory, numbers: the same for the same arguments, and not heard of.
_PURE = regex(
    r"_Unwind_\w+|__(cxa|gxx|stack_chk|gmon)_\w+|_ITM_\w+|_ZT[ISV]\w+|_Zn[wa]\w+|_Zd[la]\w+"
    r"|mem(cpy|move|set|cmp)|strlen|strn?cmp|malloc|calloc|free|abort"
    r"|(sqrt|exp2?|expm1|log(2|10|1p)?|pow|sin|cos|tan|tanh|erf|floor|ceil|trunc|round|rint"
    r"|nearbyint|l?lround|l?lrint|fmod|remainder|fmax|fmin|fma|ldexp|frexp|scalbn)f?"
)


@cache
def is_pure(library: Path) -> bool:
    """Whether all that a library calls elsewhere is such: no clock, no chance, no output."""
    return all(_PURE.fullmatch(name) for name in imported(library))


def imported(library: Path) -> list[str]:
    """The names of what a library takes from others."""
    sections = sections_of(library.read_bytes())
    names = sections[".dynstr"].data if ".dynstr" in sections else b""
    found: list[str] = []
    for name, _, _, place, _, _ in _SYMBOL.iter_unpack(sections[".dynsym"].data if names else b""):
        if name and place == _UNDEFINED:
            found.append(names[name : names.index(0, name)].decode("utf-8", "replace"))
    return found
