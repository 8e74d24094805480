"""Arithmetic on lanes: a lane of the result is made of the same lanes of the operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from ptokit.base.dtypes import DType, dtype, i32, i64, u32, u64
from ptokit.isa.expr import BOOL, Const, Convert, Expr, apply, select
from ptokit.isa.freedom import Freedom, ulp, unspecified
from ptokit.isa.micro.spec import CALL, ZEROING_CALL, Law, lanewise
from ptokit.isa.numerics import (
    exact,
    larger,
    multiply_add,
    positive_part,
    quotient,
    smaller,
)

INTEGERS = "i8 u8 i16 u16 i32 u32"
FLOATS = "f16 f32"
NUMBERS = f"{INTEGERS} f16 bf16 f32"
EVERY = f"{INTEGERS} i64 u64 f16 bf16 f32"
BITS = f"{EVERY} f8e4m3 f8e5m2 f8e8m0 hif8 f4e2m1x2 f4e1m2x2"

_UNARY = "a:V mask:M -> dst:V"
_BINARY = "a:V b:V mask:M -> dst:V"
_ACCURACY = ulp(None, "The exact result, rounded once to the element type.")
ZEROING = unspecified(
    "an inactive lane",
    "That an inactive lane of the result is 0 is stated, and no recorded run shows it.",
)
_COUNTS = unspecified("a count outside 0 .. width - 1", "What such a count shifts is open.")


def _define(
    signature: str,
    name: str,
    types: str,
    doc: str,
    function: Callable[..., Expr],
    *freedom: Freedom,
    cpp: str = ZEROING_CALL,
    laws: Iterable[Law] = (),
) -> None:
    more = {"freedom": (ZEROING, *freedom), "cpp": cpp, "laws": laws}
    lanewise(signature, name=name, types=types, doc=doc, **more)(function)


# ---- one register ------------------------------------------------------------------------------

_SIGNED = f"i8 i16 i32 {FLOATS}"


def _function(name: str) -> Callable[[Expr], Expr]:
    """A function of a lane, rounded once."""

    def rounded(a: Expr) -> Expr:
        return exact(name, a)

    return rounded


def _absolute(a: Expr) -> Expr:
    return abs(a)


def _negative(a: Expr) -> Expr:
    return -a


def _positive(a: Expr) -> Expr:
    return positive_part(a)


def _complement(a: Expr) -> Expr:
    return ~a


def _reciprocal(a: Expr) -> Expr:
    return quotient(Const(a.kind, 1), a)


_unary = partial(_define, _UNARY)
_unary("vabs", _SIGNED, "Take the absolute value; that of the least integer wraps.", _absolute)
_unary("vneg", _SIGNED, "Change the sign; integers wrap.", _negative)
_unary("vexp", FLOATS, "Raise e to the power of each lane.", _function("exp"), _ACCURACY)
_unary("vln", FLOATS, "Take the natural logarithm: -inf of 0.", _function("log"), _ACCURACY)
_unary("vsqrt", FLOATS, "Take the square root.", _function("sqrt"), _ACCURACY)
_unary("vrec", FLOATS, "Take the reciprocal.", _reciprocal, _ACCURACY)
_unary("vrelu", f"i32 {FLOATS}", "Replace what is not positive by 0.", _positive)
_unary("vnot", INTEGERS, "Complement every bit.", _complement)


# ---- two registers -----------------------------------------------------------------------------


def _sum(a: Expr, b: Expr) -> Expr:
    return a + b


def _difference(a: Expr, b: Expr) -> Expr:
    return a - b


def _product(a: Expr, b: Expr) -> Expr:
    return a * b


def _quotient(a: Expr, b: Expr) -> Expr:
    return quotient(a, b)


def _with_nan(chosen: Callable[[Expr, Expr], Expr]) -> Callable[[Expr, Expr], Expr]:
    """A choice that is NaN when either operand is."""

    def choice(a: Expr, b: Expr) -> Expr:
        found = chosen(a, b)
        return select(apply("isnan", b), b, found) if a.kind.is_float else found

    return choice


def _on_bits(name: str) -> Callable[[Expr, Expr], Expr]:
    """An operation on the bits of lanes, whatever they stand for."""

    def combined(a: Expr, b: Expr) -> Expr:
        bits = dtype(f"u{8 * a.kind.itemsize}")
        if a.kind.is_integer:
            return apply(name, a, b)
        return _as(apply(name, _as(a, bits), _as(b, bits)), a.kind)

    return combined


def _as(value: Expr, kind: DType) -> Expr:
    """The same bytes as another type: codes of 4-bit pairs too, whose own width is less."""
    return Convert(kind, value, None)


def _shift(name: str) -> Callable[[Expr, Expr], Expr]:
    """A shift by counts that may have the signed type of the same width."""

    def shifted(a: Expr, b: Expr) -> Expr:
        return apply(name, a, b if b.kind is a.kind else b.bits(a.kind))

    return shifted


_ARITHMETIC = "i16 u16 i32 u32 f16 bf16 f32"
_BY_ZERO = unspecified("an integer divided by 0", "The quotient is 0 here; nobody says.")
_binary = partial(_define, _BINARY)
_binary("vadd", EVERY, "Add two registers; integers wrap.", _sum)
_binary("vsub", EVERY, "Subtract a register from another; integers wrap.", _difference)
_binary("vmul", _ARITHMETIC, "Multiply two registers; integers wrap.", _product)
_binary("vdiv", "f16 f32 i16 i32", "Divide; integers toward zero.", _quotient, _BY_ZERO)
_binary("vmax", NUMBERS, "Take the larger lane; NaN if either is.", _with_nan(larger))
_binary("vmin", NUMBERS, "Take the smaller lane; NaN if either is.", _with_nan(smaller))
_binary("vand", BITS, "Combine the bits with and; of floats too.", _on_bits("and"))
_binary("vor", BITS, "Combine the bits with or; of floats too.", _on_bits("or"))
_binary("vxor", BITS, "Combine the bits with exclusive or; of floats too.", _on_bits("xor"))

_LEFT = "Shift lanes to the left by"
_RIGHT = "Shift lanes to the right, signed ones with their sign, by"
_SIGNED_COUNTS = Law(
    "counts are signed, or of the type of the lanes",
    lambda a, b: b.has_sign or b.spelled == a.spelled,
    "look at the counts as signed integers with pto.vbitcast",
)
_shifts = partial(_define, "a:V b:W mask:M -> dst:V", laws=[_SIGNED_COUNTS])
_shifts("vshl", INTEGERS, f"{_LEFT} the counts beside them.", _shift("shl"), _COUNTS)
_shifts("vshr", INTEGERS, f"{_RIGHT} the counts beside them.", _shift("shr"), _COUNTS)
_shifts_all = partial(_define, "a:V b:int mask:M -> dst:V")
_shifts_all("vshls", INTEGERS, f"{_LEFT} one count.", _shift("shl"), _COUNTS)
_shifts_all("vshrs", INTEGERS, f"{_RIGHT} one count.", _shift("shr"), _COUNTS)


# ---- a register and a number -------------------------------------------------------------------


def _leaky(a: Expr, b: Expr) -> Expr:
    return select(a >= 0, a, a * b)


_AT_ZERO = unspecified("a lane that is 0", "Whether it counts as negative shows in its sign.")
_scalar = partial(_define, "a:V b:S mask:M -> dst:V")
_scalar("vadds", NUMBERS, "Add a number to every lane; integers wrap.", _sum)
_scalar("vmuls", _ARITHMETIC, "Multiply every lane by a number; integers wrap.", _product)
_scalar("vmaxs", NUMBERS, "Take the larger of each lane and a number.", _with_nan(larger))
_scalar("vmins", NUMBERS, "Take the smaller of each lane and a number.", _with_nan(smaller))
_scalar("vlrelu", FLOATS, "Multiply negative lanes by a number.", _leaky, _AT_ZERO)
_binary("vprelu", FLOATS, "Multiply negative lanes by the slope beside them.", _leaky, _AT_ZERO)


# ---- several at once ---------------------------------------------------------------------------

_ROUNDED = unspecified("floats", "One rounding is meant; recorded runs cannot tell it from two.")
_IN_PLACE = "{name}({dst}, {a}, {b}, {mask}, MODE_ZEROING)"
_THREE = "acc:V a:V b:V mask:M -> dst:V"


def _added_product(acc: Expr, a: Expr, b: Expr) -> Expr:
    return multiply_add(a, b, acc)


def _multiplied_sum(acc: Expr, a: Expr, b: Expr) -> Expr:
    return multiply_add(a, acc, b)


def _scaled_sum(a: Expr, b: Expr, s: Expr) -> Expr:
    return multiply_add(a, s, b)


_define(
    _THREE,
    "vmula",
    "i16 i32 f16 bf16 f32",
    "Add the product of two registers to a third; floats are rounded once.",
    _added_product,
    _ROUNDED,
    cpp=f"vmov({{dst}}, {{acc}}); {_IN_PLACE}",
)
_define(
    _THREE,
    "vmadd",
    "f16 bf16 f32",
    "Multiply the first register by the second and add the third, rounded once.",
    _multiplied_sum,
    _ROUNDED,
    cpp=f"vmov({{dst}}, {{acc}}); {_IN_PLACE}",
)
_define(
    "a:V b:V s:S mask:M -> dst:V",
    "vaxpy",
    FLOATS,
    "Multiply a register by a number and add another, rounded once.",
    _scaled_sum,
    _ROUNDED,
    cpp="vmov({dst}, {b}); {name}({dst}, {a}, {s}, {mask}, MODE_ZEROING)",
)


@lanewise("a:V b:V mask:M -> low:V high:V", types="i32 u32", freedom=ZEROING, cpp=CALL)
def vmull(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Multiply two registers of 32-bit lanes; the results are the halves of the product."""
    wide = i64 if a.kind is i32 else u64
    product = a.to(wide) * b.to(wide)
    return product.to(a.kind), (product >> 32).to(a.kind)


_CARRY_OUT = "{name}({carry}, {dst}, {a}, {b}, {mask})"
_CARRY_BOTH = "{name}({carry}, {dst}, {a}, {b}, {cin}, {mask})"
_CARRY = "a:V b:V mask:M -> dst:V carry:M"
_CARRY_IN = "a:V b:V cin:M mask:M -> dst:V carry:M"


def _long(value: Expr) -> Expr:
    """The bits of a 32-bit lane, as a number without a sign that has room for a carry."""
    return value.bits(u32).to(u64)


def _one_where(test: Expr) -> Expr:
    return select(test, Const(u64, 1), Const(u64, 0))


def _carried(a: Expr, total: Expr) -> tuple[Expr, Expr]:
    return total.to(u32).bits(a.kind), total > u32.max_value


@lanewise(_CARRY, types="i32 u32", freedom=ZEROING, cpp=_CARRY_OUT)
def vaddc(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Add two registers without sign; the mask has the carries out."""
    return _carried(a, _long(a) + _long(b))


@lanewise(_CARRY_IN, types="i32 u32", freedom=ZEROING, cpp=_CARRY_BOTH)
def vaddcs(a: Expr, b: Expr, cin: Expr) -> tuple[Expr, Expr]:
    """Add two registers and a mask of carries; the other mask has the carries out."""
    return _carried(a, _long(a) + _long(b) + _one_where(cin))


@lanewise(_CARRY, types="i32 u32", freedom=ZEROING, cpp=_CARRY_OUT)
def vsubc(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Subtract without sign; the mask is set where nothing had to be borrowed."""
    return a - b, _long(a) >= _long(b)


@lanewise(_CARRY_IN, types="i32 u32", freedom=ZEROING, cpp=_CARRY_BOTH)
def vsubcs(a: Expr, b: Expr, cin: Expr) -> tuple[Expr, Expr]:
    """Subtract, and 1 where the mask is not set; the other is set where nothing was borrowed."""
    taken = _long(b) + _one_where(cin ^ Const(BOOL, 1))
    return (_long(a) - taken).to(u32).bits(a.kind), _long(a) >= taken
