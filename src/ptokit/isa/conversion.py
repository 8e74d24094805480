"""TCVT: conversion of the element type. Which pairs exist, and how each rounds, is a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.base.convert import convert, round_integral
from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType, dtype, f8e4m3, f8e5m2, f16, f32, hif8, i4, i8, i16, i32
from ptokit.base.enums import RoundMode, SaturationMode
from ptokit.base.layout import Array
from ptokit.isa.costs import CONVERSION
from ptokit.isa.devices import DEVICES
from ptokit.isa.effects import steps
from ptokit.isa.expr import Arg, apply
from ptokit.isa.facts import Ops
from ptokit.isa.folds import REGISTER_BYTES
from ptokit.isa.idioms import Elementwise, Idiom
from ptokit.isa.language import agree, in_text
from ptokit.isa.meaning import at_the_same_places
from ptokit.isa.pointwise import GOVERNED, plain, scratch, scratch_held
from ptokit.isa.regions import Extent, View, pitched
from ptokit.isa.rules import (
    located,
    must,
    or_else,
    same_place,
    same_valid,
    separate,
    static_valid_fits,
)
from ptokit.isa.services import Registers
from ptokit.isa.spec import Asm, Attr, insn, out, src, types
from ptokit.isa.targets import PerTarget

# modes: `any` takes the five modes of directed and nearest rounding, `odd` CAST_ODD as well, `-`
#        ignores the mode. A mode that is not taken means what CAST_NONE means.
# none:  what CAST_NONE means; `-` where nothing is rounded.
# sat:   what happens beyond the range of dst when the call does not say.
# where: the targets; kirin is both of them.
TABLE = """
src       dst       modes  none   sat  where
f32       f32       any    RINT   ON   a2a3 a5 kirin
f32       f16       odd    RINT   ON   a2a3 a5 kirin
f32       bf16      any    RINT   ON   a2a3 a5
f32       i16       any    TRUNC  OFF  a2a3 a5 kirin
f32       i32       any    TRUNC  ON   a2a3 a5 kirin
f32       i64       any    TRUNC  ON   a2a3 a5 kirinx90
f32       f8e4m3    -      RINT   ON   a5
f32       f8e5m2    -      RINT   ON   a5
f32       hif8      -      ROUND  ON   a5
f16       f32       -      -      ON   a2a3 a5 kirin
f16       i32       any    TRUNC  ON   a2a3 a5 kirin
f16       i16       any    TRUNC  OFF  a2a3 a5 kirin
f16       i8        any    TRUNC  OFF  a2a3 a5 kirin
f16       u8        any    TRUNC  OFF  a2a3 a5 kirin
f16       i4        any    RINT   ON   a2a3
f16       hif8      -      ROUND  ON   a5
bf16      f32       -      -      ON   a2a3 a5
bf16      f16       any    RINT   ON   a5
bf16      i32       any    TRUNC  ON   a2a3 a5
bf16      f4e1m2x2  any    RINT   ON   a5
bf16      f4e2m1x2  any    RINT   ON   a5
f8e4m3    f32       -      -      ON   a5
f8e5m2    f32       -      -      ON   a5
hif8      f32       -      -      ON   a5
f4e1m2x2  bf16      -      -      ON   a5
f4e2m1x2  bf16      -      -      ON   a5
i4        f16       -      -      ON   a2a3
i8        f16       -      -      ON   a2a3 a5 kirin
i8        i16       -      -      ON   a5 kirin
i8        i32       -      -      ON   a5 kirin
u8        f16       -      -      ON   a2a3 a5 kirin
u8        u16       -      -      ON   a5 kirin
i16       f16       any    RINT   ON   a2a3 a5 kirin
i16       f32       -      -      ON   a2a3 a5 kirin
i16       u8        -      -      ON   a5 kirin
i16       i32       -      -      ON   a5 kirin
i16       u32       -      -      ON   a5 kirin
i32       f16       -      RINT   ON   a2a3
i32       f32       any    RINT   ON   a2a3 a5 kirin
i32       u8        -      -      ON   a5 kirin
i32       i16       -      -      OFF  a2a3 a5 kirin
i32       u16       -      -      ON   a5 kirin
i32       i64       -      -      ON   a2a3 a5 kirinx90
u32       u8        -      -      ON   a5 kirin
u32       i16       -      -      ON   a5 kirin
u32       u16       -      -      ON   a5 kirin
i64       f32       any    RINT   ON   a2a3 a5 kirinx90
i64       i32       -      -      OFF  a2a3 a5 kirinx90
"""

ANY = frozenset(RoundMode) - {RoundMode.CAST_NONE, RoundMode.CAST_ODD}
MODES = {"any": ANY, "odd": ANY | {RoundMode.CAST_ODD}, "-": frozenset[RoundMode]()}


@dataclass(frozen=True)
class Pair:
    """How one source type becomes one destination type."""

    modes: frozenset[RoundMode]
    none: RoundMode
    saturation: SaturationMode  # unless the call says otherwise
    targets: frozenset[str]

    def rounding(self, mode: RoundMode) -> RoundMode:
        """The rounding that a requested mode selects."""
        return mode if mode in self.modes else self.none


def _read(table: str) -> dict[tuple[DType, DType], Pair]:
    both = {"kirin": ("kirin9030", "kirinx90")}
    pairs: dict[tuple[DType, DType], Pair] = {}
    for line in table.strip().splitlines()[1:]:
        source, destination, modes, none, saturation, *where = line.split()
        pairs[dtype(source), dtype(destination)] = Pair(
            MODES[modes],
            RoundMode.CAST_RINT if none == "-" else RoundMode[f"CAST_{none}"],
            SaturationMode[saturation],
            frozenset(name for word in where for name in both.get(word, (word,))),
        )
    return pairs


PAIRS = _read(TABLE)

CLAMPS_INTEGERS = PerTarget(False, kirin=True)  # integer to integer, whatever the call asks
CLEARS_ROWS = PerTarget(False, a5=True)  # before 4-bit floats are written
# With saturation off and a tmp, these pairs are converted through i32 and keep the low bits; a call
# without tmp is heard only where saturation is off anyway.
DETOURS = PerTarget(False, a2a3=True)
THROUGH_I32 = frozenset({(f32, i16), (f16, i16), (f16, i8)})


def pair_of(o: Any) -> Pair:
    """The conversion of src to dst; the permissive profile has every pair."""
    found = PAIRS.get((o.src.dtype, o.dst.dtype))
    if found is not None:
        return found
    truncates = o.src.dtype.is_float and o.dst.dtype.is_integer
    none = RoundMode.CAST_TRUNC if truncates else RoundMode.CAST_RINT
    return Pair(MODES["odd"], none, SaturationMode.OFF, frozenset())


def saturation_of(o: Any) -> SaturationMode:
    """The saturation in force: what the call asks for, as far as the target listens."""
    asked, default = o.attrs["satMode"], pair_of(o).saturation
    if not o.target.is_device:
        return SaturationMode.OFF if asked is None else asked
    if o.target.tile_library:  # it asks for what suits the pair, whatever the call says
        return SaturationMode.OFF if o.dst.dtype is hif8 else default
    if o.dst.dtype.is_float and o.dst.dtype.bits <= 8:
        return SaturationMode.ON  # the narrow formats always saturate
    if CLAMPS_INTEGERS[o.target] and o.src.dtype.is_integer and o.dst.dtype.is_integer:
        return SaturationMode.ON
    if asked is None:
        return default
    ignored = DETOURS[o.target] and o.tmp is None and default == SaturationMode.ON
    return SaturationMode.ON if ignored else asked


def wraps_narrower(o: Any) -> bool:
    """Whether an integer keeps its low bits, for which the target takes a detour if it has tmp."""
    return (
        DETOURS[o.target]
        and (o.src.dtype, o.dst.dtype) in THROUGH_I32
        and saturation_of(o) == SaturationMode.OFF
    )


def through_i32(o: Any) -> bool:
    """Whether the conversion takes the detour that needs tmp."""
    return o.tmp is not None and wraps_narrower(o)


def tmp_bytes(o: Any) -> int:
    """Bytes of tmp that the detour through i32 uses."""
    rows, cols = min(o.dst.vr, 255), o.dst.vc
    if o.src.dtype is f32:
        tail = (rows - 1) * o.src.row_stride // 8 + -(-(cols % 64) // 8) if cols % 64 else 0
        return max(256 * min(cols // 64, 255), 32 * tail)
    half = min(cols, 64)
    blocks = 32 * -(-half // 8)
    return blocks if o.dst.dtype is i16 else max(blocks, 128 + 32 * -(-half // 16))


def _is_low(tile: Any) -> bool:
    """Whether the elements are floats of a byte or less."""
    return tile.dtype.is_float and tile.itemsize == 1


def to_fp4(o: Any) -> bool:
    return o.dst.dtype.is_float and o.dst.dtype.is_packed


def exists(o: Any) -> bool:
    """Whether the target converts this pair, in this way; if not, dst is left as it is."""
    return not o.target.is_device or (o.target.name in pair_of(o).targets and has_odd_rounding(o))


def has_odd_rounding(o: Any) -> bool:
    """Whether rounding to odd is not asked for, or known; Kirin knows it for one pair only."""
    asked = o.attrs["mode"] == RoundMode.CAST_ODD and CLAMPS_INTEGERS[o.target]
    return not asked or (o.src.dtype, o.dst.dtype) == (f32, f16)


def destination(o: Any) -> View | Extent:
    """The valid region, or whole rows where these are cleared first."""
    if not exists(o):
        return 0, 0
    if o.dst.dtype is i4 and o.target.is_device:
        return in_byte_rows(o.dst, o)
    return (o.dst.vr, o.dst.cols) if CLEARS_ROWS[o.target] and to_fp4(o) else View.VALID


def converted(o: Any) -> View | Extent:
    """What of src is converted: the valid region of dst, 4-bit floats in pairs."""
    if not exists(o):
        return 0, 0
    if o.src.dtype is i4 and o.target.is_device:
        return in_byte_rows(o.src, o)
    cols = o.dst.vc - o.dst.vc % 2 if CLEARS_ROWS[o.target] and to_fp4(o) else o.dst.vc
    return at_the_same_places(o.src, (o.dst.vr, cols))


def in_byte_rows(tile: Any, o: Any) -> Extent:
    """Elements that lie two to a byte, in rows of as many bytes as the tile has columns."""
    return pitched(o.dst.vr, o.dst.vc, 2 * tile.row_stride)


# ---- in place ----------------------------------------------------------------------------------

# Rows, and the repeats of a row, follow each other upwards: elements that are not wider overwrite,
# at the address of src, only what was read. But A2/A3 leaves what is behind the whole repeats of
# every row to the end.
TAILS_LAST = PerTarget(False, a2a3=True)


def in_place(o: Any) -> bool:
    """Whether dst lies at the address of src, with elements and rows that are not longer."""
    (wide, long), (wide0, long0) = (
        (t.dtype.bits, t.row_stride * t.dtype.bits if o.dst.vr > 1 else 0) for t in (o.dst, o.src)
    )
    return same_place(o.dst, o.src) and wide <= wide0 and long <= long0


def per_repeat(o: Any) -> int:
    """Elements of a 256-byte repeat."""
    packed = o.src.dtype.is_packed or o.dst.dtype.is_packed
    return 128 if packed else REGISTER_BYTES // max(o.src.itemsize, o.dst.itemsize)


def has_late_tails(o: Any) -> bool:
    """Whether remainders of rows are read after rows above them were written."""
    cols, repeat = o.dst.vc, per_repeat(o)
    several = o.dst.vr > 1 and cols > repeat and cols % repeat != 0
    narrows = o.dst.dtype.bits < o.src.dtype.bits
    return TAILS_LAST[o.target] and narrows and several and in_place(o)


# What makes whole numbers of floats, for the modes that have a name.
_INTEGRAL = {
    RoundMode.CAST_RINT: "rint",
    RoundMode.CAST_NONE: "rint",
    RoundMode.CAST_FLOOR: "floor",
    RoundMode.CAST_TRUNC: "trunc",
}


def _loop(o: Ops) -> Idiom | None:
    """Conversions of each element by itself, where none waits for others."""
    source, result = o.src.dtype, o.dst.dtype
    clamps_nan = o.target.is_device and result in (f8e4m3, f8e5m2)
    if clamps_nan or has_late_tails(o) or not o.attrs["NeedSetCtrl"]:
        return None
    value, rounding = Arg(source, "src"), pair_of(o).rounding(o.attrs["mode"])
    if source is result:
        name = _INTEGRAL.get(rounding) if source is f32 else None
        return None if name is None else Elementwise("dst", apply(name, value))
    if through_i32(o):
        whole = value.to(i32, rounding, SaturationMode.ON)
        return Elementwise("dst", whole.to(result, saturation=saturation_of(o)))
    return Elementwise("dst", value.to(result, rounding, saturation_of(o)))


def heads_then_tails(dst: Array, src: Array, change: Callable[[Array], Array], ops: Ops) -> None:
    """Convert over the source itself: whole repeats of all rows, then the rest of all rows."""
    rows, cols = src.shape
    pitch = ops.src.row_stride * ops.src.itemsize
    memory = np.zeros(rows * pitch + cols * src.itemsize, np.uint8)
    shape, size = (rows, cols), ops.dst.itemsize
    read = np.ndarray(shape, src.dtype, memory, 0, (pitch, src.itemsize))
    write = np.ndarray(shape, dst.dtype, memory, 0, (ops.dst.row_stride * size, size))
    read[...] = src
    head = cols - cols % per_repeat(ops)
    for part in (slice(0, head), slice(head, cols)):
        for row in range(rows):
            write[row, part] = change(read[row, part])
    dst[...] = write


_apart = separate("dst", "src").holds


@insn(
    out("dst", view=destination),
    src("src", view=converted),
    scratch(tmp_bytes, used=through_i32, optional=True, note="scratch on A2/A3, see the rules"),
    cost=CONVERSION,
    attrs=[
        Attr("mode", RoundMode, RoundMode.CAST_RINT, "rounding", argument=True),
        Attr("satMode", SaturationMode, None, "saturation; None: as the pair", argument=True),
        Attr("NeedSetCtrl", bool, True, "False: the caller has set the control register"),
    ],
    types=types(
        "dst src",
        **{
            target: " ".join(f"{d},{s}" for (s, d), pair in PAIRS.items() if target in pair.targets)
            for target in DEVICES.split()
        },
        otherwise="nothing is converted: dst is left as it is",
    ),
    rules=[
        *or_else(GOVERNED, same_valid("dst", "src")),
        plain("dst", "src"),
        located("Vec", "dst", "src"),
        *static_valid_fits("dst", "src"),
        must("partial-overlap", DEVICES)(
            "dst starts where src does, and its elements and rows are not longer in bytes, or it "
            "does not overlap src",
            lambda o: in_place(o) or _apart(o),
            "convert into another tile: wider elements overwrite what is still to be read",
        ),
        must("late-tails", "a2a3")(
            "in place, to narrower elements: one row, at most 256 bytes of the wider elements, or "
            "a multiple of that",
            lambda o: not has_late_tails(o),
            "convert into another tile",
            lambda o: (
                ""
                if o.dst.dtype.is_packed
                else "remainders of the rows come last, and are made of what the rows above left"
            ),
        ),
        must("even-columns", "a5")(
            "a tile of 4-bit floats is written in whole bytes: its valid columns are even",
            lambda o: not to_fp4(o) or o.dst.vc % 2 == 0,
            "convert one column more",
            "the last column is not converted: it is 0",
        ),
        must("odd-rounding", "kirin9030 kirinx90")(
            "CAST_ODD is for f32 to f16: with another pair nothing would be converted",
            has_odd_rounding,
            "choose another rounding mode",
            "nothing is converted: dst is left as it is",
        ),
        scratch_held(
            "tmp",
            lambda o: tmp_bytes(o) if through_i32(o) else 0,
            "256 at most for f16, for f32 at most those of src",
        ),
        separate("tmp", "dst", "src", id="tmp-separate", on="a2a3"),
        in_text(
            "same-shape",
            "dst and src have the same rows and columns",
            agree("dst", "src", facts="rows cols"),
            fix="declare both tiles with one shape",
        ),
        in_text(
            "same-valid",
            "dst and src have the same valid rows and columns",
            agree("dst", "src"),
            fix="give the tiles the same valid region",
        ),
        in_text(
            "dtype",
            "the target converts between these types of 8 bits and less",
            lambda o: not (_is_low(o.src) or _is_low(o.dst)) or o.target.name in pair_of(o).targets,
            DEVICES,
            "convert by way of f32",
        ),
    ],
    streams=True,
    idiom=_loop,
    steps=[
        steps("a2a3", lambda o: (o.src.dtype, o.dst.dtype) == (i32, f16), start="V"),
        steps(
            "a2a3", lambda o: through_i32(o) and o.src.dtype is f32, between="V", keeps_scratch=True
        ),
        steps("a2a3", through_i32, between="V", end="V", complete=True),
    ],
    asm=Asm(
        attrs={"mode": "rmode", "satMode": "sat_mode satmode"},
        place={"mode": "ins", "satMode": "ins"},
        absent={"satMode": SaturationMode.OFF},
        spelled={"satMode": saturation_of},
        order=("src", "tmp", "dst"),
        supplied={"tmp": wraps_narrower},
    ),
    example={"tmp": "Vec u8 1x256"},
)
def TCVT(
    dst: Array,
    src: Array,
    tmp: Array,
    mode: RoundMode,
    NeedSetCtrl: bool,
    ops: Ops,
    registers: Registers,
) -> None:
    """Convert every element to the element type of the destination.

    Each pair of types has its rounding modes; a mode it does not have, and CAST_NONE, mean
    truncation from float to integer, ties away from zero to hif8, and otherwise nearest even. f32
    to f32 rounds to whole numbers. CAST_ODD, rounding to odd, exists for f32 to f16.

    What exceeds the destination is clamped when saturation is on. When it is off, integers keep
    their low bits (NaN and -inf become 0, +inf all ones) and floats become infinite. By default
    saturation is off for f32 and i32 to i16, f16 to i16, i8 and u8, and i64 to i32; a text without
    `sat_mode` asks for OFF. `satMode` overrules this, except that A2/A3 without `tmp` heeds it only
    for these pairs, Kirin always saturates integer to integer, and fp8, hif8 and fp4 always
    saturate; fp8 has 0 for NaN then.

    In place the elements may stay as wide or become narrower; A2/A3 converts what is past whole
    256-byte repeats last, which is too late for several rows of narrower elements. A5 clears the
    rest of each row when it writes 4-bit floats. Integers of 4 bits lie two to a byte, but their
    rows begin as many bytes apart as the tile has columns.

    Only A2/A3 uses `tmp`, with saturation off, for f32 to i16 and f16 to i16 and i8: these then go
    through i32, so that f32 values beyond i32 end at its limits.
    """
    source, result = ops.src.dtype, ops.dst.dtype
    rounding, saturation = pair_of(ops).rounding(mode), saturation_of(ops)
    if not NeedSetCtrl:
        saturation = SaturationMode(registers.get("CTRL", 0) >> 59 & 1)

    def change(values: Array) -> Array:
        if source is result is f32:
            return round_integral(values, rounding)
        if through_i32(ops):
            whole = convert(values, source, i32, rounding)
            return convert(whole, i32, result, saturation=saturation)
        found = convert(values, source, result, rounding, saturation)
        if ops.target.is_device and result in (f8e4m3, f8e5m2):  # they clamp, and NaN is no number
            found = np.where(np.isnan(values), np.zeros((), found.dtype), found)
        return found

    if has_late_tails(ops):
        heads_then_tails(dst, src, change, ops)
    elif dst.size:
        dst[:, : src.shape[1]] = change(src)
        if dst.shape != src.shape:
            dst[:, src.shape[1] :] = 0
