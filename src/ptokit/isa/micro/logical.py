"""Logical vectors: what code generators write, vectors of any number of lanes without a layout.

A lane stays in its place whatever its width becomes, so the body of an operation on registers that
works lane by lane is that of its sister here. Reductions and broadcasts go by groups of lanes, and
transfers by rows a stride apart. A compiler spreads such vectors over registers; what they hold
does not depend on how.

The language is written in two vocabularies. That of people and generators has one name for all
element types and an optional mask (`vadd`); that of the compiler, between its passes, one name for
floats and one for integers, and no mask (`addf`, `addi`). Both are here, with one body.

Integers that say nothing of a sign (`i32`) have none, except where a record says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ptokit.isa.expr import Expr, apply
from ptokit.isa.micro import arithmetic
from ptokit.isa.micro.arithmetic import FLOATS, INTEGERS, NUMBERS
from ptokit.isa.micro.convert import exp_of_difference
from ptokit.isa.micro.spec import MICRO, Example, Flow, Law, Masking, Micro, Word, micro

logical = partial(micro, is_logical=True)

PMODE = Word(
    "pmode", ("zero", "merge"), "zero", "what an inactive lane is: 0, or the first operand"
)
ZEROES = Word("pmode", ("zero",), "zero", "an inactive lane is 0: there is none to keep")
GROUP = Word("group", (), "0", "in how many groups the lanes are")
GROUPS = Word("num_groups", (), None, "in how many groups the lanes are", example="8 : i64")
WIDE = f"{FLOATS} bf16"  # floats that are computed with
ANY = f"{INTEGERS} {WIDE} f8e4m3 f8e5m2 f8e8m0 hif8"  # of lanes that only change places

KEEPS = Law(
    "lanes that are kept have the type of dst",
    lambda a, dst, pmode: pmode == "zero" or a.spelled == dst.spelled,
    "select between both with pto.vmi.vsel",
)
ONE_TYPE = Law("a and dst have one element type", lambda a, dst: a.spelled == dst.spelled)

# ---- lane by lane ------------------------------------------------------------------------------

_SIGNED = "i8 i16 i32"
_TYPES = {  # where they are not those of the sister
    "vabs": f"{_SIGNED} {WIDE}",
    "vneg": f"{INTEGERS} {FLOATS}",
    "vdiv": FLOATS,
    "vmula": NUMBERS,
    "vmuls": f"i16 u16 i32 u32 {FLOATS}",
}
_COUNT = Law("the count is an i16", lambda b: b.spelled == "i16", "write arith.trunci to i16")
_LAWS = {
    "vmull": [
        Law("there are 64, 128 or 256 lanes", lambda a: a.lanes in (64, 128, 256)),
        Law("the lanes are i32, which have a sign here, or ui32", lambda a: a.spelled[0] != "s"),
    ],
    "vshls": [_COUNT],
    "vshrs": [_COUNT],
}
_SIGNLESS = {"vmull": "i"}  # recorded runs show products of negative i32
_EXAMPLES: dict[str, Example] = {
    "vmull": lambda T, U: dict.fromkeys(("a", "b", "low", "high"), f"!pto.vmi.vreg<64x{T.mlir}>")
}


def _signature(record: Micro, names: Iterable[str] = (), is_masked: bool = True) -> dict[str, Any]:
    """The signature and the text of a sister; `names` are the operands in another order."""
    own = {slot.name: slot for slot in record.operands if slot.name != "mask"}
    operands = [own[name] for name in names or own]
    given = " ".join(f"{slot.name}:{slot.kind}" for slot in operands)
    made = " ".join(f"{slot.name}:{slot.kind}" for slot in record.results)
    before = ", ".join(f"%{slot.name}" for slot in operands)
    types = ", ".join(f"T({slot.name})" for slot in operands)
    behind = ", ".join(f"T({slot.name})" for slot in record.results)
    mask, its_type = ("[?, %mask?]", "[?, T(mask)?]") if is_masked else ("", "")
    return {
        "signature": f"{given} mask?:M -> {made}" if is_masked else f"{given} -> {made}",
        "syntax": f"{before}{mask} {{}} : {types}{its_type} -> {behind}",
        "masking": Masking.ZERO if is_masked else Masking.NONE,
    }


def _types(record: Micro) -> str:
    listed = [">".join(kind.name for kind in one) for one in record.types]
    return " ".join(each for each in listed if "64" not in each and "f4" not in each)


def _sister(record: Micro, name: str, types: str, doc: str = "", **more: Any) -> Micro:
    """An operation on logical vectors with the body of one on registers."""
    first = record.doc.partition("\n")[0]
    return logical(
        name=f"vmi.{name}",
        types=types,
        freedom=record.freedom,
        is_lanewise=record.is_lanewise,
        doc=doc or f"{first} Here of logical vectors, lane by lane.",
        **more,
    )(record.body)


def _is_plain(record: Micro) -> bool:
    """Whether it makes registers of registers and numbers, each lane by itself."""
    slots = (*record.operands, *record.results)
    return (
        record.masking is Masking.ZERO
        and record.flow is Flow.LANES
        and record.lost is None
        and record.footprint is None
        and not record.words
        and all(slot.kind in ("V", "W", "S", "int", "M") for slot in slots)
        and not {"T", "U", "mask"} & set(record.parameters)
    )


_ON_BITS = ("vand", "vor", "vxor", "vnot")  # of masks too: below
for _record in MICRO.defined_in(arithmetic.__name__):
    if _is_plain(_record) and _record.name not in _ON_BITS:
        _sister(
            _record,
            _record.name,
            _TYPES.get(_record.name, _types(_record)),
            words=[PMODE if len(_record.results) == 1 else ZEROES],
            laws=_LAWS.get(_record.name, ()),
            signless=_SIGNLESS.get(_record.name, "u"),
            example=_EXAMPLES.get(_record.name),
            **_signature(_record),
        )

# What the compiler calls them: for floats and for integers apart, and without a mask.
_NAMES = {
    "addf": ("vadd", WIDE, "Add two vectors of floats."),
    "addi": ("vadd", INTEGERS, "Add two vectors of integers, which wrap."),
    "subf": ("vsub", WIDE, "Subtract a vector of floats from another."),
    "subi": ("vsub", INTEGERS, "Subtract a vector of integers from another; they wrap."),
    "mulf": ("vmul", WIDE, "Multiply two vectors of floats."),
    "muli": ("vmul", "i16 u16 i32 u32", "Multiply two vectors of integers, which wrap."),
    "divf": ("vdiv", FLOATS, "Divide a vector of floats by another."),
    "minf": ("vmin", WIDE, "Take the smaller of two floats; NaN if either is."),
    "maxf": ("vmax", WIDE, "Take the larger of two floats; NaN if either is."),
    "mini": ("vmin", INTEGERS, "Take the smaller of two integers."),
    "maxi": ("vmax", INTEGERS, "Take the larger of two integers."),
    "negf": ("vneg", FLOATS, "Change the sign of floats."),
    "negi": ("vneg", INTEGERS, "Change the sign of integers, which wrap."),
    "absf": ("vabs", FLOATS, "Take the absolute value of floats."),
    "absi": ("vabs", _SIGNED, "Take the absolute value of integers; that of the least wraps."),
    "sqrt": ("vsqrt", FLOATS, "Take the square root."),
    "exp": ("vexp", FLOATS, "Raise e to the power of each lane."),
    "ln": ("vln", FLOATS, "Take the natural logarithm: -inf of 0."),
    "relu": ("vrelu", f"i32 {FLOATS}", "Replace what is not positive by 0."),
    "shli": ("vshl", INTEGERS, "Shift lanes to the left by the counts beside them."),
    "shrui": ("vshr", "u8 u16 u32", "Shift lanes to the right by the counts; zeros come in."),
    "shrsi": ("vshr", _SIGNED, "Shift lanes to the right by the counts; the sign comes in."),
}
for _name, (_of, _kinds, _what) in _NAMES.items():
    _sister(MICRO[_of], _name, _kinds, _what, **_signature(MICRO[_of], is_masked=False))
_sister(
    MICRO["vmula"],
    "fma",
    WIDE,
    "Multiply two vectors and add a third, rounded once.",
    **_signature(MICRO["vmula"], ("a", "b", "acc"), is_masked=False),
)


@logical(
    "a:V b:V mask?:M -> dst:W",
    name="vmi.vexpdif",
    types="f16>f32 f32>f32",
    words=[PMODE],
    laws=[KEEPS],
    syntax="%a, %b[?, %mask?] {} : T(a), T(b)[?, T(mask)?] -> T(dst)",
    freedom=MICRO["vexpdif"].freedom,
    is_lanewise=True,
)
def vexpdif(a: Expr, b: Expr) -> Expr:
    """Raise e to the difference of two vectors, in f32."""
    return exp_of_difference(a, b)


# ---- bits, of vectors and of masks -------------------------------------------------------------


def _and(a: Expr, b: Expr) -> Expr:
    return a & b


def _or(a: Expr, b: Expr) -> Expr:
    return a | b


def _xor(a: Expr, b: Expr) -> Expr:
    return a ^ b


def _not(a: Expr) -> Expr:
    return ~a


_WHOLE = Law(
    "masks are combined as a whole, without a mask of their own",
    lambda a, mask, pmode: a.kind is not None or (mask is None and pmode == "zero"),
    "combine the result with that mask too",
)
_BITWISE: dict[str, tuple[str, Callable[..., Expr], str, str]] = {
    "vand": ("and", _and, "andi", "Combine the bits with and"),
    "vor": ("or", _or, "ori", "Combine the bits with or"),
    "vxor": ("xor", _xor, "xori", "Combine the bits with exclusive or"),
    "vnot": ("not", _not, "not", "Complement every bit"),
}
bitwise = partial(logical, is_lanewise=True)
for _name, (_word, _body, _of_integers, _what) in _BITWISE.items():
    _slots = ("a",) if _word == "not" else ("a", "b")
    _given = ", ".join(f"%{n}" for n in _slots)
    _shown = ", ".join(f"T({n})" for n in _slots)
    bitwise(
        " ".join(f"{n}:E" for n in _slots) + " mask?:M -> dst:E",
        name=f"vmi.{_name}",
        types=INTEGERS,
        words=[PMODE],
        laws=[_WHOLE],
        masking=Masking.ZERO,
        syntax=f"{_given}[?, %mask?] {{}} : {_shown}[?, T(mask)?] -> T(dst)",
        doc=f"{_what} of integers, or of masks.",
    )(_body)
    bitwise(
        " ".join(f"{n}:V" for n in _slots) + " -> dst:V",
        name=f"vmi.{_of_integers}",
        types=INTEGERS,
        doc=f"{_what} of integers.",
    )(_body)
    bitwise(
        " ".join(f"{n}:M" for n in _slots) + " -> dst:M",
        name=f"vmi.mask_{_word}",
        doc=f"{_what} of masks.",
    )(_body)


# ---- comparing and selecting -------------------------------------------------------------------

TESTS = ("eq", "ne", "lt", "le", "gt", "ge")
_ORDERED = tuple(f"o{test}" for test in TESTS)
_CMP = Word("cmp", (*TESTS, *_ORDERED), note="with an o in front: of floats, false beside NaN")
_TESTED = Law(
    "integers have no ordered comparisons",
    lambda a, cmp: a.is_float or cmp in TESTS,
    "leave the o out",
)


def _compared(a: Expr, b: Expr, cmp: str) -> Expr:
    if cmp == "one":  # unlike ne, which holds beside NaN
        return apply("and", apply("ne", a, b), apply("and", apply("eq", a, a), apply("eq", b, b)))
    return apply(cmp if cmp in TESTS else cmp[1:], a, b)


for _name, _second, _what in (
    ("vcmp", "V", "two vectors"),
    ("vcmps", "S", "a vector with a number"),
):
    logical(
        f"a:V b:{_second} mask:M -> dst:M",
        name=f"vmi.{_name}",
        types=NUMBERS,
        words=[_CMP, ZEROES],
        laws=[_TESTED],
        syntax="%a, %b, %mask {} : T(a), T(b), T(mask) -> T(dst)",
        is_lanewise=True,
        doc=f"Compare {_what}: a bit is set where the mask is and the comparison holds.",
    )(_compared)


def _predicate(a: Expr, b: Expr, predicate: str) -> Expr:
    return _compared(a, b, predicate)


for _name, _kinds, _tests, _what in (
    ("cmpf", WIDE, (*TESTS, *_ORDERED), "floats"),
    ("cmpi", INTEGERS, TESTS, "integers"),
):
    logical(
        "a:V b:V -> dst:M",
        name=f"vmi.{_name}",
        types=_kinds,
        words=[Word("predicate", _tests)],
        syntax="@predicate, %a, %b {} : T(a), T(b) -> T(dst)",
        is_lanewise=True,
        doc=f"Compare two vectors of {_what}: a bit is set where the comparison holds.",
    )(_predicate)


def _selected(select: Expr, a: Expr, b: Expr) -> Expr:
    return apply("select", select, a, b)


_SELECTS = "Take the lanes of one vector where the mask is set, those of another elsewhere."
for _name in ("vsel", "select"):
    logical(
        "select:M a:V b:V -> dst:V",
        name=f"vmi.{_name}",
        flow=Flow.BYTES,
        types=ANY,
        is_lanewise=True,
        doc=_SELECTS,
    )(_selected)
