"""Tile-scalar arithmetic: each element meets one number.

The number is converted to the element type first, as C++ converts an argument, and the operation is
that of the tile-tile instruction of the same name. Comparison and selection with a scalar are in
`compare.py`, bitwise operations in `bitwise.py`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from ptokit.base.dtypes import f32, i32
from ptokit.base.precision import DivAlgorithm, FmodSAlgorithm, RemSAlgorithm
from ptokit.isa.costs import DIVISION
from ptokit.isa.devices import DEVICES
from ptokit.isa.effects import UNTIL_DONE, steps
from ptokit.isa.elementwise import MOD_BY_ZERO, REM_BY_ZERO
from ptokit.isa.expr import ON_DEVICE, Arg, Condition, Const, Expr, given, on, undefined
from ptokit.isa.facts import TileFacts
from ptokit.isa.freedom import ulp, unspecified
from ptokit.isa.language import of_elements, remainder_room
from ptokit.isa.meaning import Each
from ptokit.isa.numerics import (
    floored_remainder,
    larger,
    leaky,
    quotient,
    smaller,
    truncated_remainder,
)
from ptokit.isa.pointwise import (
    GOVERNED,
    NUMBERS,
    ONLY_ADDRESS,
    WIDER_NUMBERS,
    arithmetic,
    in_place_or_apart,
    not_empty,
    on_a2a3,
    one_vector,
    one_vector_of_i64,
    plain,
    pointwise,
    precision,
    scratch,
    with_scalar,
)
from ptokit.isa.rules import (
    Predicate,
    Words,
    disjoint,
    located,
    must,
    or_else,
    same_dtype,
    same_place,
    same_valid_shape,
    separate,
    static_valid_fits,
)
from ptokit.isa.scalars import element_of
from ptokit.isa.spec import Asm, Operand, Rule, family, inout, insn, out, scalar, src, types


def _silently(o: Any) -> tuple[int, int]:
    """Some instructions of A2/A3 do nothing at all when the valid regions differ."""
    tiles = [facts for _, facts in o if isinstance(facts, TileFacts)]
    idle = on_a2a3(o) and len({(tile.vr, tile.vc) for tile in tiles}) > 1
    return (0, 0) if idle else one_vector(o)


_NUMBER = scalar("scalar", element_of("src"))
_AS_DST = element_of("dst")
_RULES = [*with_scalar(), one_vector_of_i64()]
_SILENT_RULES = [*with_scalar(silent=True), one_vector_of_i64()]
tile_scalar = partial(insn, means=Each(over=one_vector, strided=on_a2a3))
_with_number = partial(tile_scalar, out("dst"), src("src"), _NUMBER)
_or_nothing = partial(
    insn, out("dst"), src("src"), _NUMBER, means=Each(over=_silently, strided=on_a2a3)
)

# ---- sum, difference, product, order -----------------------------------------------------------


@_or_nothing(types=types(**NUMBERS, ids={"a2a3": "SA-0137"}), rules=_SILENT_RULES)
def TADDS(src: Expr, scalar: Expr) -> Expr:
    """Add a scalar to every element.

    Integers wrap around. Floats are rounded once, to nearest even, in their own type.
    """
    return src + scalar


@_or_nothing(
    types=types(**NUMBERS),
    rules=[
        *_SILENT_RULES,
        must("scalar-range", "a2a3")(
            "an i32 scalar lies between -2^24 and 2^24: A2/A3 negates it in f32",
            lambda o: o.src.dtype is not i32 or abs(o.scalar.value) <= 1 << 24,
            "TADDS the negated scalar",
            "the f32 nearest to the scalar is subtracted",
        ),
    ],
)
def TSUBS(src: Expr, scalar: Expr) -> Expr:
    """Subtract a scalar from every element.

    Integers wrap around. Floats are rounded once, to nearest even, in their own type. A2/A3 passes
    i32 scalars through f32, which rounds those beyond 2^24.
    """
    if scalar.kind is not i32:
        return src - scalar
    return given(on("a2a3"), src + (-scalar.to(f32)).to(i32), src - scalar)


@_with_number(types=types(**WIDER_NUMBERS, ids={"a2a3": "SA-0286"}), rules=_RULES)
def TMULS(src: Expr, scalar: Expr) -> Expr:
    """Multiply every element by a scalar.

    Integer products keep their low bits. No target multiplies 8-bit elements.
    """
    return src * scalar


family(
    partial(
        _with_number,
        types=types(**NUMBERS),
        rules=_RULES,
        freedom=unspecified(
            "NaN; zeros of both signs",
            "A NaN element is kept, a NaN scalar ignored; of two zeros the element is taken.",
        ),
    ),
    """Replace elements [below|above] a scalar by it.

    Keep NaN out of both operands: what becomes of it is up to the hardware, as is the sign of a
    zero taken from +0 and -0.
    """,
    TMAXS=larger,
    TMINS=(smaller, {"means": Each(over=_silently, strided=on_a2a3), "rules": _SILENT_RULES}),
)


# ---- division ----------------------------------------------------------------------------------


class _EitherOrder:
    """The operands of TDIVS with the tile, be it dividend or divisor, under the name `src`."""

    def __init__(self, o: Any) -> None:
        self._o = o

    def __getattr__(self, name: str) -> Any:
        if name == "src":
            return self._o.src0 if self._o.src0.kind == "tile" else self._o.scalar
        return getattr(self._o, name)

    __getitem__ = __getattr__


def _tile_and_scalar(o: Any) -> bool:
    return {o.src0.kind, o.scalar.kind} == {"tile", "scalar"}


def _in_either_order(rules: list[Rule]) -> list[Rule]:
    """The rules asked of whichever source is the tile; silent when there is no telling."""

    def adapted(one: Rule) -> Rule:
        def either(holds: Predicate) -> Predicate:
            return lambda o: not _tile_and_scalar(o) or holds(_EitherOrder(o))

        def told(words: Words) -> Words:
            return words if isinstance(words, str) else lambda o: words(_EitherOrder(o))

        return replace(
            one,
            holds=either(one.holds),
            typed=None if one.typed is None else either(one.typed),
            otherwise=told(one.otherwise),
            fix=told(one.fix),
        )

    return [adapted(one) for one in rules]


_IN_PLACE = Condition(
    "in place on a2a3",
    lambda o: on_a2a3(o) and o.src0.kind == "tile" and same_place(o.dst, o.src0),
)


_OVER_DIVISOR = Condition(
    "over the divisor on a2a3",
    lambda o: on_a2a3(o) and o.scalar.kind == "tile" and same_place(o.dst, o.scalar),
)


@insn(
    out("dst"),
    Operand("src0", "in", kinds=("tile", "scalar"), takes=_AS_DST, note="dividend"),
    Operand(
        "scalar",
        "in",
        kinds=("scalar", "tile"),
        takes=_AS_DST,
        note="divisor; one of the two is a tile",
    ),
    means=Each(leaves_open=True, over=_silently, strided=on_a2a3),
    cost=DIVISION,
    attrs=precision(DivAlgorithm),
    types=types(
        a2a3="i16 i32 f16 f32",
        a5="i16 u16 i32 u32 i64 u64 f16 f32",
        kirin="i16 u16 i32 u32 f16 f32",
        ids="SA-0152",
    ),
    rules=[
        must("sources")(
            "one source is a tile, the other a scalar",
            _tile_and_scalar,
            "divide two tiles with TDIV",
        ),
        *_in_either_order(with_scalar(silent=True)),
        one_vector_of_i64(),
        must("zero-divisor", DEVICES)(
            "a scalar that divides integers of 16 or 32 bits is not zero",
            lambda o: (
                o.scalar.kind == "tile"
                or o.dst.dtype.is_float
                or o.dst.itemsize == 8
                or o.scalar.value != 0
            ),
        ),
        must("separate", "a2a3")(
            "dst is not the divisor: A2/A3 fills it with the dividend first",
            lambda o: not _OVER_DIVISOR.holds(o),
            "divide into another tile",
            lambda o: (
                "the dividend is divided by itself"
                if o.dst.dtype.is_float
                else "integers are divided one by one, which works in place"
            ),
        ),
    ],
    more_examples=[{"src0": "7", "scalar": "Vec f32 16x64"}],
    steps=[
        steps(when=lambda o: o.dst.dtype.is_integer, between="V", end="V", complete=True),
        steps(when=lambda o: o.scalar.kind == "tile" or not _IN_PLACE.holds(o), between="V"),
    ],
    freedom=ulp(
        1, "Floats: the nearest value, where hardware may be off by one in the last place."
    ),
)
def TDIVS(src0: Arg, scalar: Arg, PrecisionType: DivAlgorithm) -> Expr:
    """Divide a tile by a scalar, or a scalar by a tile: the order of the operands decides.

    `TDIVS(dst, src, scalar)` is src / scalar, `TDIVS(dst, scalar, src)` is scalar / src. Floats
    follow IEEE 754: x / 0 is an infinity, 0 / 0 NaN. Integer quotients are truncated towards zero,
    and the smallest integer divided by -1 wraps to itself. x / 0 is 0 for 64-bit integers; narrower
    ones are divided in the scalar unit, where it has no defined result. On A2/A3 a float tile that
    is divided in place is multiplied by the rounded reciprocal instead, and a tile cannot be both
    divisor and destination. HIGH_PRECISION corrects the last place on A5.
    """
    kind = src0.kind
    found = quotient(src0, scalar, PrecisionType == DivAlgorithm.HIGH_PRECISION)
    if src0.is_number and kind.is_integer and kind.bits < 64:
        return given(ON_DEVICE, undefined(scalar.eq(0), found), found)
    if src0.is_number and kind.is_float:
        return given(_OVER_DIVISOR, src0 / src0, found)
    if scalar.is_number and kind.is_float:
        return given(_IN_PLACE, src0 * (Const(kind, 1) / scalar), found)
    return found


# ---- remainders --------------------------------------------------------------------------------


_SHARES_CORRECTION = Condition(
    "more than 64 columns on a2a3", lambda o: on_a2a3(o) and o.dst.vc > 64
)


@tile_scalar(
    out("dst"),
    src("src", lost=lambda o: on_a2a3(o) and o.dst.dtype is i32),
    _NUMBER,
    scratch(lambda o: o.dst.vc * o.dst.itemsize, note="a row of scratch on A2/A3"),
    means=Each(over=one_vector, strided=on_a2a3, early={"src_mod_64": ("src", 64)}),
    cost=DIVISION,
    attrs=precision(RemSAlgorithm),
    types=types(
        a2a3="i32 f32",
        a5="i16 u16 i32 u32 i64 u64 f16 f32",
        kirin9030="i16 u16 i32 u32 f16 f32",
    ),
    rules=[
        *_RULES,
        of_elements("scalar", "src"),
        *or_else(ONLY_ADDRESS, same_dtype("dst", "tmp", id="tmp-type", on="a2a3")),
        must("tmp-columns", "a2a3")(
            "tmp has a valid row with the valid columns of dst",
            lambda o: o.tmp.vr >= 1 and o.tmp.vc >= o.dst.vc,
            "declare tmp with one row as wide as dst",
            ONLY_ADDRESS,
        ),
        remainder_room(1),
        must("correction-lanes", "a2a3")(
            "at most 64 valid columns: the sign is corrected by a mask of 64 lanes",
            lambda o: not _SHARES_CORRECTION.holds(o),
            "process the tile in pieces of 64 columns",
            "column c is corrected where column c mod 64 needs it",
        ),
        disjoint("dst", "src", "tmp", on="a2a3"),
        must("in-place", "a5")(
            "dst is not src when the elements are u64: A5 writes dst before it reads src again",
            lambda o: o.src.dtype.name != "u64" or not same_place(o.dst, o.src),
        ),
    ],
    example={"tmp": "Vec {T} 1x64"},
    freedom=MOD_BY_ZERO,
    steps=[UNTIL_DONE],
)
def TREMS(src: Expr, scalar: Expr, src_mod_64: Expr, PrecisionType: RemSAlgorithm) -> Expr:
    """Take the remainder of a division by a scalar; its sign is that of the scalar.

    `dst = src - floor(src / scalar) * scalar`. Floats round the quotient on the way, so the result
    is good only while |src / scalar| < 2^24; A5 does not mend a result that this puts on the wrong
    side of zero, but HIGH_PRECISION makes f32 exact there. A zero scalar gives NaN. A5 gives the
    remainder of 64-bit integers the sign of the dividend, and x mod 0 is 0. A2/A3 computes i32 in
    f32, exactly up to 2^24, needs `tmp`, destroys an i32 src, and decides from the first 64 columns
    of a row which others are mended; other targets do not touch `tmp`.
    """
    high = PrecisionType == RemSAlgorithm.HIGH_PRECISION
    alone = floored_remainder(src, scalar, high, mended_on_a5=False)
    if src.kind not in (f32, i32):
        return alone
    shared = floored_remainder(src, scalar, high, mended_on_a5=False, decided_by=src_mod_64)
    return given(_SHARES_CORRECTION, shared, alone)


@_with_number(
    cost=DIVISION,
    attrs=precision(FmodSAlgorithm),
    types=types(a2a3="f32", a5="i16 u16 i32 u32 f16 f32", kirin="i16 u16 i32 u32 f16 f32"),
    rules=[*with_scalar(), of_elements("scalar", "src"), separate("dst", "src", on="a2a3")],
    freedom=REM_BY_ZERO,
    steps=[UNTIL_DONE],
)
def TFMODS(src: Expr, scalar: Expr, PrecisionType: FmodSAlgorithm) -> Expr:
    """Take the remainder of a division by a scalar; its sign is that of the dividend.

    `dst = src - trunc(src / scalar) * scalar`. Floats round the quotient on the way, so the result
    is good only while |src / scalar| < 2^24; HIGH_PRECISION makes f32 exact on A5. A zero scalar
    gives NaN. On A2/A3 the destination serves as scratch and must not be the source.
    """
    return truncated_remainder(src, scalar, PrecisionType == FmodSAlgorithm.HIGH_PRECISION)


# ---- combinations ------------------------------------------------------------------------------


@_with_number(
    types=types(a2a3="f16 f32", a5="f16 f32", kirin="f16 f32"),
    rules=with_scalar(),
    asm=Asm(called={"slope": "scalar"}),
)
def TLRELU(src: Expr, scalar: Expr) -> Expr:
    """Multiply the elements that are not positive by a slope, the scalar (leaky ReLU).

    `dst = src if src > 0 else src * scalar`; zero and NaN take the product.
    """
    return leaky(src, scalar)


_AXPY = "f16,f16 f32,f32 f32,f16"


@insn(
    inout("dst"),
    src("src"),
    _NUMBER,
    means=Each(converts=True, over=_silently),
    types=types("dst src", a2a3=_AXPY, a5=_AXPY, kirin=_AXPY),
    rules=[
        arithmetic("src"),
        arithmetic("dst"),
        *or_else(
            lambda o: "nothing is done at all" if on_a2a3(o) else GOVERNED,
            same_valid_shape("dst", "src", rows="PA-0020", cols="PA-0017"),
        ),
        not_empty("dst", on="a2a3"),
        *static_valid_fits("dst", "src"),
        located("Vec", "dst", "src", on=DEVICES),
        plain("dst", "src", on="a2a3"),
        *in_place_or_apart("dst", "src"),
    ],
    asm=Asm(forms=frozenset({"l2"})),
    freedom=ulp(1, "The product is rounded to the element type of dst before it is added."),
)
def TAXPY(src: Expr, scalar: Expr, dst: Expr) -> Expr:
    """Add a multiple of a tile: dst = dst + scalar * src.

    The scalar takes the element type of src. An f32 destination accepts an f16 source, which is
    widened first. Whether the product is rounded before the sum is up to the hardware.
    """
    return dst + src.to(dst.kind) * scalar.to(dst.kind)


_THREE_TILES = must("same-type")(
    "dst, src0 and src1 are tiles of one type",
    lambda o: o.dst.spec is o.src0.spec and o.dst.spec is o.src1.spec,
    "declare them with the same template arguments",
)
family(
    partial(
        tile_scalar,
        out("dst"),
        src("src0"),
        scalar("scalar", element_of("src0")),
        src("src1"),
        types=types(a2a3="i16 i32 f16 f32", a5="i16 i32 f16 f32"),
        rules=[_THREE_TILES, *pointwise("dst", "src0", "src1")],
    ),
    """[Add a scalar and a tile to a tile: (src0 + scalar)|\
Subtract a scalar from a tile and add a tile: (src0 - scalar)] + src1, from left to right.

    No device has it as one instruction: it stands for [TADDS|TSUBS] followed by TADD, with a
    rounding after each. The three tiles have one type.
    """,
    TADDSC=lambda a, b, c: a + b + c,
    TSUBSC=lambda a, b, c: a - b + c,
)
