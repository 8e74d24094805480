"""Conversions of logical vectors: every lane stays in its place, whatever its width becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ptokit.base.convert import convert, pack4, unpack4
from ptokit.base.dtypes import DType, bf16, dtype
from ptokit.base.layout import Array
from ptokit.isa.expr import Expr
from ptokit.isa.freedom import unspecified
from ptokit.isa.micro.convert import changed, converted
from ptokit.isa.micro.logical import KEEPS, PMODE, logical
from ptokit.isa.micro.spec import Law, Masking, Vector, Word

_SAME_AS = {"": "R", "H": "A"}


def _element(a: Expr, U: DType, rounding: str = "", saturate: str = "") -> Expr:
    return converted(a, _SAME_AS.get(rounding, rounding), saturate, U)


def _convert(a: Array, rounding: str, saturate: str, T: DType, U: DType) -> Array:
    rounding = _SAME_AS.get(rounding, rounding)
    if T.is_packed:  # a lane is two values, and becomes a pair of bf16
        return convert(unpack4(a), T, bf16).view(U.np)
    if U.is_packed:
        return pack4(changed(a.view(bf16.np), bf16, U, rounding, saturate))
    return changed(a, T, U, rounding, saturate)


# ---- which there are ---------------------------------------------------------------------------

_EVERY = ["i8", "u8", "i16", "u16", "i32", "u32", "f16", "bf16", "f32", "f8e4m3", "f8e5m2", "hif8"]

_TO_SIGNED = {"f32": ("i32", "i16"), "f16": ("i32", "i16", "i8"), "bf16": ("i32",)}
_SAME_WIDTH = (("bf16", "f16"),)  # the only floats that change without changing their width


def _pair(a: Vector, dst: Vector) -> tuple[str, str]:
    assert a.kind is not None
    assert dst.kind is not None
    return a.kind.name, dst.kind.name


def _exists(a: Vector, dst: Vector) -> bool:
    source, result = _pair(a, dst)
    pairs = {a.is_pair, dst.is_pair}
    if pairs == {True, False}:  # of 4-bit floats in bytes, which are pairs of bf16 when wide
        names = {a.spelled, dst.spelled}
        return {a.is_packed, dst.is_packed} == {True, False} and "!pto.bf16x2" in names
    if a.is_float and dst.is_float:
        return a.bits != dst.bits or (source, result) in _SAME_WIDTH
    if a.is_float:
        return result in _TO_SIGNED.get(source, ()) or (source, result) == ("f16", "u8")
    return a.bits != dst.bits if dst.is_integer else a.has_sign


def _narrows(a: Vector, dst: Vector) -> bool:
    """Floats to as few bits or fewer: also pairs of 4-bit floats, which never saturate."""
    return a.is_float and dst.is_float and dst.bits <= a.bits


def _may_overflow(a: Vector, dst: Vector) -> bool:
    """Whether what becomes of values beyond the range has to be said."""
    if dst.is_packed or a.is_packed:
        return False
    if a.is_float and dst.is_integer:
        return _pair(a, dst) != ("f16", "i32")
    return _narrows(a, dst) or (a.is_integer and dst.is_integer and dst.bits < a.bits)


def _has_native_form(a: Vector, dst: Vector, saturate: str) -> bool:
    return saturate != "SAT" or _pair(a, dst) != ("i32", "i8")


def _rounds(a: Vector, dst: Vector, rounding: str) -> bool:
    if not rounding or rounding not in _MODES.choices:
        return True  # the choices say that
    if a.is_float and dst.is_integer:
        return rounding in "RAFCZ"
    return _narrows(a, dst) and rounding in ("RAFCZ" if dst.is_packed else "RAHZ")


def _types(holds: Callable[[Vector, Vector], bool]) -> str:
    """The pairs of single element types for which something holds."""
    every = [Vector(1, dtype(name), name) for name in _EVERY]
    return " ".join(f"{a.spelled}>{b.spelled}" for a in every for b in every if holds(a, b))


def _written(T: DType, U: DType) -> Mapping[str, str]:
    a, dst = Vector(1, T, T.name), Vector(1, U, U.name)
    return {"saturate": '"NOSAT"'} if _may_overflow(a, dst) else {}


EXISTS = Law(
    "there is such a conversion: of floats to a type of another width or bf16 to f16, to integers "
    "as the vector unit has them, of integers to another width; only signed ones become floats",
    _exists,
    "go by f32, or look at the bits with pto.vmi.vinterpret_cast",
)
SATURATES = Law(
    "what may be beyond the range says whether it saturates",
    lambda a, dst, saturate: bool(saturate) or not _may_overflow(a, dst),
    'write {saturate = "SAT"} or {saturate = "NOSAT"}',
    code="micro-saturate",
    otherwise="integers keep their low bits, floats go to infinity, and what becomes an integer "
    "saturates",
)
_FITS = Law(
    "nothing saturates where all values are in the range",
    lambda a, dst, saturate: not saturate or _may_overflow(a, dst),
    "leave saturate out",
)
_NATIVE = Law(
    "from si32 to si8 nothing saturates",
    _has_native_form,
    'write {saturate = "NOSAT"}, or go by si16',
)
_ROUNDS = Law("floats that become narrower round by R, A, H or Z, to integers by R, A, F, C or Z",
              _rounds)  # fmt: skip
_MODES = Word("rounding", tuple("RAFCZH"), "", "how it rounds; R unless written")
_BEYOND = Word("saturate", ("SAT", "NOSAT"), "", "what becomes of values beyond the range")
_FREE = unspecified("H, half up", "As A here: no recorded run tells them apart.")


logical(
    "a:V mask?:M -> dst:W",
    name="vmi.vcvt",
    types=_types(_exists),
    example=_written,
    words=[_MODES, _BEYOND, PMODE],
    laws=[EXISTS, SATURATES, _FITS, _NATIVE, _ROUNDS, KEEPS],
    masking=Masking.ZERO,
    syntax="%a[?, %mask?] {} : T(a)[?, T(mask)?] -> T(dst)",
    element=_element,
    freedom=_FREE,
    doc="Convert the element type; every lane stays in its place.",
)(_convert)


def _wider(a: Vector, dst: Vector) -> bool:
    return dst.bits > a.bits


_KINDS: dict[str, tuple[str, Law, tuple[Any, ...]]] = {
    "extf": (
        "Widen floats.",
        Law(
            "floats become wider ones",
            lambda a, dst: a.is_float and dst.is_float and _wider(a, dst) and _exists(a, dst),
        ),
        (),
    ),
    "truncf": (
        "Narrow floats.",
        Law(
            "floats become narrower ones, or bf16 becomes f16",
            lambda a, dst: _narrows(a, dst) and _exists(a, dst),
        ),
        (_MODES, _BEYOND),
    ),
    "fptosi": (
        "Convert floats to integers with a sign.",
        Law(
            "floats become signed integers, as the vector unit has it",
            lambda a, dst: a.is_float and dst.has_sign and _exists(a, dst),
        ),
        (_MODES, _BEYOND),
    ),
    "fptoui": (
        "Convert floats to integers without a sign.",
        Law(
            "f16 becomes ui8",
            lambda a, dst: a.is_float and not dst.has_sign and _exists(a, dst),
        ),
        (_MODES, _BEYOND),
    ),
    "sitofp": (
        "Convert integers with a sign to floats.",
        Law("si32 becomes f32", lambda a, dst: _pair(a, dst) == ("i32", "f32")),
        (),
    ),
    "extsi": (
        "Widen integers with their sign.",
        Law(
            "signed integers become wider ones",
            lambda a, dst: a.has_sign and dst.has_sign and _wider(a, dst),
        ),
        (),
    ),
    "extui": (
        "Widen integers with zeros.",
        Law(
            "integers without a sign become wider ones",
            lambda a, dst: (
                a.is_integer
                and dst.is_integer
                and not a.has_sign
                and not dst.has_sign
                and _wider(a, dst)
            ),
        ),
        (),
    ),
    "trunci": (
        "Narrow integers.",
        Law(
            "integers become narrower ones",
            lambda a, dst: a.is_integer and dst.is_integer and dst.bits < a.bits,
        ),
        (_BEYOND,),
    ),
}


def _exact(a: Array, T: DType, U: DType) -> Array:
    return _convert(a, "R", "", T, U)


def _narrowed(a: Array, saturate: str, T: DType, U: DType) -> Array:
    return _convert(a, "R", saturate, T, U)


for _name, (_what, _law, _words) in _KINDS.items():
    _laws = [
        _law,
        *([SATURATES, _FITS] if _BEYOND in _words else []),
        *([_ROUNDS] if _MODES in _words else []),
    ]
    logical(
        "a:V -> dst:W",
        name=f"vmi.{_name}",
        types=_types(_law.holds),
        example=_written if _words else None,
        words=_words,
        laws=_laws,
        element=_element,
        freedom=_FREE if _MODES in _words else (),
        doc=_what,
    )(_convert if _MODES in _words else _narrowed if _words else _exact)
