"""How C++ writes a call where it is not simply `NAME(operands)`.

Template arguments mostly stand first in the brackets, in the order of the record; what the table
below does not name is written so. Some instructions put the types of operands before them, some
ask for brackets even where every argument has its default, a few take operands by pointer or go by
another name.

A pattern is a list of words: `@attr` is the value of a template argument, `operand` the type of an
operand, `operand.T` its element type. The first pattern whose words are all there and which shows
every argument that differs from its default is taken; the empty pattern is a call without brackets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ptokit.isa.spec import Insn

_PARTS = (
    "",
    "dst src fp @accToVecMode @reluPreMode",
    "dst src @reluPreMode",
    "dst src @accToVecMode @reluPreMode",
)
_PARTS_FP = ("", "dst src fp @reluPreMode")


def _with_phase(patterns: Sequence[str]) -> Sequence[str]:
    return (*patterns, *(f"@stPhase {pattern}".strip() for pattern in patterns))


BRACKETS: dict[str, Sequence[str]] = {
    "TSTORE": _with_phase(("", "src dst @atomicType", "src dst @atomicType @reluPreMode")),
    "TSTORE_FP": ("", "src dst fp @atomicType @reluPreMode"),
    "TMOV": _with_phase(_PARTS),
    "TMOV_FP": _with_phase(_PARTS_FP),
    "TEXTRACT": _PARTS,
    "TEXTRACT_FP": _PARTS_FP,
    "TINSERT": (*_PARTS, "@mode"),
    "TINSERT_FP": _PARTS_FP,
    "TFILLPAD": ("", "@mode", "dst @PadVal"),
    "TGATHER": (
        "dst src0 k_value cdst tmp @cmpMode",
        "",
        "dst src0 @maskPattern @gatherType",
    ),
    "TCI": ("dst tmp dst.T @descending", "dst dst.T @descending"),
    "TTRI": ("dst @isUpperOrLower",),
    "THISTOGRAM": ("@byte",),
    "TMRGSORT": (
        "dst tmp src0 src1 src2 src3 @exhausted",
        "dst tmp src0 src1 src2 @exhausted",
        "dst tmp src0 src1 @exhausted",
        "",
    ),
    "TQUANT": ("@quant_type",),
    "TQUANT_MX": (
        "@grp_axis @mx_alg",
        "@quant_type @store_mode",
        "@quant_type dst src exp max scaling @scale_alg",
    ),
    "TQUANT_DN": ("@grp_axis @mx_alg", "@grp_axis @mx_alg @interleave"),
}

# Operands that C++ takes by pointer.
POINTERS = {
    "TQUANT": {"offset"},
    "TQUANT_MX": {"exp", "max", "scaling", "exp_zz"},
    "TQUANT_DN": {"exp", "max", "scaling"},
}

# Instructions that are methods of their first operand.
METHODS = {"GETVAL": "GetValue", "SETVAL": "SetValue"}

# Numbers that C++ takes as an array: its type, and the numbers.
ARRAYS = {
    "TRANDOM": {
        "TRandomKey": ("key0", "key1"),
        "TRandomCounter": ("counter0", "counter1", "counter2", "counter3"),
    }
}

# Arguments behind the operands that exist only beside another operand.
ONLY_WITH = {"isBinary": "tmp"}

# Operands whose overload has no default for a template argument.
ASKS_FOR = {"MGATHER": {"scratch": "coalesce"}}

# Operands C++ wants written out although they may be left out here: they are another operand.
IMPLIED = {"TMATMUL_ACC": {"cInMatrix": "cOutMatrix"}}


def name_of(insn: Insn, present: set[str], given: Mapping[str, Any]) -> str:
    """The C++ function: a transfer with a table of scales has a name of its own."""
    fp_name = f"{insn.name}_FP"
    if "fp" in present and given.get("accToVecMode") is None and fp_name in BRACKETS:
        return fp_name
    return insn.overload_of or insn.name


def brackets(insn: Insn, present: set[str], given: Mapping[str, Any]) -> list[str] | None:
    """The words in the angle brackets; None when C++ has no way to say it.

    `given` holds the template arguments that differ from their default.
    """
    for operand, attr in ASKS_FOR.get(insn.name, {}).items():
        if operand in present and attr not in given:
            return None
    own = [a.name for a in insn.attrs if not a.argument]
    chosen = {name for name in own if name in given}
    name = name_of(insn, present, given)
    patterns = BRACKETS.get(name if name.endswith("_FP") else insn.name)
    if patterns is None:
        last = max((i for i, n in enumerate(own) if n in chosen), default=-1)
        return [f"@{n}" for n in own[: last + 1]]
    values = {a.name: given.get(a.name, a.default) for a in insn.attrs}
    for pattern in patterns:
        words = pattern.split()
        shown = {w[1:] for w in words if w.startswith("@")}
        types = {w.partition(".")[0] for w in words if not w.startswith("@")}
        said = all(values[name] is not None for name in shown)
        if types <= present and chosen <= shown and said:
            return words
    return None
