"""Convolution as a matrix product: feature maps become rows of a left matmul operand.

TIMG2COL gathers; the three configuration instructions load the registers it reads. The registers
keep the words the hardware would hold, so a call in a MANUAL mode sees exactly what was set.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ptokit.base.convert import element
from ptokit.base.dtypes import DType
from ptokit.base.enums import Layout, SetFmatrixMode
from ptokit.base.layout import Array
from ptokit.isa.facts import Ops
from ptokit.isa.idioms import MOVES
from ptokit.isa.rules import located, must, same_dtype
from ptokit.isa.scalars import unsigned
from ptokit.isa.services import Beyond, Refused, Registers
from ptokit.isa.spec import Asm, Attr, Cpp, Pipe, View, insn, out, scalar, src, types
from ptokit.isa.targets import Target
from ptokit.isa.transfer import c0, up

MODE = Attr(
    "FmatrixMode", SetFmatrixMode, SetFmatrixMode.FMATRIX_A_MANUAL, "register set, and who loads it"
)
_B_MODES = (SetFmatrixMode.FMATRIX_B_AUTO, SetFmatrixMode.FMATRIX_B_MANUAL)
_AUTO_MODES = (SetFmatrixMode.FMATRIX_A_AUTO, SetFmatrixMode.FMATRIX_B_AUTO)


# ---- registers -----------------------------------------------------------------------------------


# Register -> the instruction that loads it.
_SETTERS = {
    "FMATRIX": "SETFMATRIX",
    "L3D_RPT": "SET_IMG2COL_RPT",
    "PADDING": "SET_IMG2COL_PADDING",
}


def _word(register: str, p: Mapping[str, Any], kind: DType, target: Target) -> int:
    """What the parameters of a ConvTile put into a register."""
    if register == "FMATRIX":
        pads = sum(pad << 32 + 8 * i for i, pad in enumerate(p["padList"]))
        return p["fmapW"] | p["fmapH"] << 16 | pads
    if register == "L3D_RPT":
        word = p["repeatStride"] | p["repeatTime"] << 16 | p["repeatMode"] << 24
        placed = p["dstStride"] << 32 | p["dstMposition"] << 48
        return word | (placed if target.register_sets > 1 else 0)
    value = np.array([element(p["padValue"], kind)], kind.np)
    bits = int(value.view(kind.uint)[0])
    return bits | bits << 8 if kind.itemsize == 1 else bits


def _chosen(name: str, mode: SetFmatrixMode, target: Target) -> str:
    """The register a mode selects: FMATRIX exists twice everywhere, the others only on some."""
    twice = name == "FMATRIX" or target.register_sets > 1
    return f"{name}_B" if twice and mode in _B_MODES else name


def _load(
    name: str,
    given: Mapping[str, Any],
    kind: DType,
    mode: SetFmatrixMode,
    target: Target,
    registers: Registers,
) -> None:
    registers[_chosen(name, mode, target)] = _word(name, given, kind, target)


def _loads(register: str, note: str, doc: str, **more: Any) -> None:
    """Define the instruction that loads a register."""

    def body(src: Any, FmatrixMode: SetFmatrixMode, target: Target, registers: Registers) -> None:
        if register != "FMATRIX" or FmatrixMode not in _AUTO_MODES:
            _load(register, src.parameters, src.spec.dtype, FmatrixMode, target, registers)

    insn(
        src("src", kinds=("conv",), view=View.OBJECT, is_handle=True, note=note),
        name=_SETTERS[register],
        attrs=[MODE],
        pipe=Pipe.S,
        sets=register,
        cpp=Cpp(brackets=("", "src @FmatrixMode")),
        example={"src": "Conv Mat f16 NC1HWC0 1x1x4x4x16"},
        doc=doc,
        **more,
    )(body)


_loads(
    "FMATRIX",
    "ConvTile with fmapH, fmapW and padList",
    """Load feature-map size and padding into image-to-column register A or B.

    The word holds fmapW in bits 15..0, fmapH in bits 31..16 and the padding left, right, top and
    bottom in the four bytes above. It lasts until it is loaded again and must be ordered before the
    TIMG2COL that uses it. The AUTO modes load nothing: TIMG2COL does it.
    """,
    asm=Asm(name="SETFMATRIX", forms=frozenset({"l1", "l2"}), ins=("src",), outs=()),
)
_loads(
    "L3D_RPT",
    "ConvTile with repeatStride, repeatTime, repeatMode; A5: dstStride, dstMposition",
    """Load the repeat configuration of the image-to-column engine.

    repeatStride in bits 15..0, repeatTime in 23..16, repeatMode in 31..24; on A5 also dstStride in
    47..32 and dstMposition in 63..48. A5 has a second register for the B modes.
    """,
    targets="a2a3 a5 kirinx90",
    asm=Asm(ins=("src",), outs=()),
)
_loads(
    "PADDING",
    "ConvTile with padValue",
    """Load the value the image-to-column engine puts where the filter leaves the feature map.

    It is the bit pattern of padValue, a byte twice; how far the padding reaches is SETFMATRIX's
    business. A5 has a second register for the B modes.
    """,
    targets="a2a3 a5 kirinx90",
    asm=Asm(ins=("src",), outs=()),
)


# ---- TIMG2COL ------------------------------------------------------------------------------------


def _written(o: Any) -> tuple[int, int]:
    """Rows and columns written: columns come in whole blocks of channels on devices."""
    return o.dst.vr, up(o.dst.vc, c0(o.src)) if o.target.is_device else o.dst.vc


def _not_loaded(name: str, mode: SetFmatrixMode, target: Target) -> Refused:
    return Refused(
        "register",
        f"in a MANUAL mode register {_chosen(name, mode, target)} has been loaded",
        got=[("FmatrixMode", mode.name)],
        fix=f"call {_SETTERS[name]} before, or use an AUTO mode",
    )


def _set_up(o: Ops, mode: SetFmatrixMode, registers: Registers) -> dict[str, Any]:
    """The parameters in force: the tile's own, with what the registers say in their place."""
    target, kind = o.target, o.src.dtype
    # As they were when the call was made: the setters may have been called again since.
    p = dict(o.src.parameters)
    if not target.is_device:
        return p | {"padValue": element(p["padValue"], kind)}
    if mode in _AUTO_MODES:
        for name in _SETTERS:
            _load(name, p, kind, mode, target, registers)
    fmatrix, repeat, padding = (registers.get(_chosen(name, mode, target)) for name in _SETTERS)
    if fmatrix is None:
        raise _not_loaded("FMATRIX", mode, target)
    in_force = {
        "fmapW": fmatrix & 0xFFFF,
        "fmapH": fmatrix >> 16 & 0xFFFF,
        "padList": tuple(fmatrix >> 32 + 8 * i & 0xFF for i in range(4)),
        "repeatTime": 1 if repeat is None else repeat >> 16 & 0xFF,
        "padValue": None,
    }
    if padding is not None:
        bits = np.array([padding & (1 << 8 * kind.itemsize) - 1], kind.uint)
        in_force["padValue"] = bits.view(kind.np)[0]
    return p | in_force


def _positions(p: dict[str, Any], fmap: str, before: int, after: int, axis: str) -> int:
    """How many places the filter takes along one axis of the padded feature map."""
    room = p[fmap] + before + after - p["dilation" + axis] * (p["filter" + axis] - 1) - 1
    return max(room // p["stride" + axis] + 1, 0)


@insn(
    out("dst", view=_written),
    src("src", kinds=("conv",), note="ConvTile, NC1HWC0 or NDC1HWC0"),
    scalar("posM", unsigned(16), optional=True, note="first row of the unrolled matrix"),
    scalar("posK", unsigned(16), optional=True, note="first column of the unrolled matrix"),
    attrs=[MODE],
    pipe=Pipe.MTE1,
    uses="FMATRIX L3D_RPT PADDING",
    types=types(
        "dst",
        a2a3="i8 f16 bf16 f32",
        a5="i8 u8 i16 u16 i32 u32 f16 bf16 f32",
        kirinx90="i8 f16 f32",
    ),
    rules=[
        located("Left", "dst"),
        located("Mat", "src"),
        same_dtype("dst", "src"),
        must("src-layout")(
            "src is NC1HWC0 with five or NDC1HWC0 with six dimensions",
            lambda o: (
                (o.src.layout, len(o.src.shape)) in ((Layout.NC1HWC0, 5), (Layout.NDC1HWC0, 6))
            ),
        ),
        *(
            must("dst-layout", on)(
                f"dst has {order}-major fractals with rows inside ({layout})",
                lambda o, layout=layout: o.dst.layout == layout,
                "use TileLeft, which takes the layout of the target",
            )
            for order, layout, on in (("row", "ZZ", "a2a3 kirinx90"), ("column", "NZ", "a5"))
        ),
        must("channel-blocks", "a2a3 a5 kirinx90")(
            "the last dimension of src is C0 = 32 bytes of channels",
            lambda o: o.src.shape[-1] == c0(o.src),
        ),
        must("filter")(
            "the filter is 1 to 511 high and wide, strides and dilations are positive",
            lambda o: (
                1 <= o.src.filterH <= 511
                and 1 <= o.src.filterW <= 511
                and min(o.src.strideH, o.src.strideW, o.src.dilationH, o.src.dilationW) >= 1
            ),
        ),
        must("channels")(
            "channelSize is C1 * C0",
            lambda o: (
                o.src.channelSize == o.src.shape[-4] * o.src.shape[-1]
                or (not o.target.is_device and o.src.channelSize == 0)
            ),
            "src.SetChannelSize(C1 * C0)",
        ),
        must("pos-k", "a2a3 a5 kirinx90")(
            "posK is a multiple of C0",
            lambda o: o.posK is None or o.posK.value % c0(o.src) == 0,
        ),
    ],
    asm=Asm(forms=frozenset({"l1", "l2"}), ins=("src", "posM", "posK"), outs=("dst",)),
    cpp=Cpp(brackets=("", "dst src @FmatrixMode")),
    example={"dst": "Left {T} 16x64", "src": "Conv Mat {T} NC1HWC0 1x2x4x4x{C0}"},
    setup="src.SetChannelSize(src.GetShape(1) * src.GetShape(4)); src.SetFmapH(4); "
    "src.SetFmapW(4); src.SetFilterH(2); src.SetFilterW(2); src.SetPadListArray([0, 1, 0, 1]); "
    "SETFMATRIX(src); SET_IMG2COL_PADDING(src)",
    idiom=lambda o: MOVES,
)
def TIMG2COL(
    dst: Array,
    src: Array,
    posM: int | None,
    posK: int | None,
    FmatrixMode: SetFmatrixMode,
    ops: Ops,
    registers: Registers,
    beyond: Beyond,
) -> None:
    """Unroll a feature map in L1 into rows of a left matmul operand.

    Row m of the unrolled matrix is an output position (n, d, ho, wo), column k a filter tap of a
    channel, ordered C1, kh, kw, C0. dst takes its valid rows from posM on and its valid columns,
    rounded up to C0, from posK on. Where the filter leaves the feature map the pad value is taken.
    Bits are copied; posK should be a multiple of C0.

    Filter, stride and dilation come from the ConvTile. Feature-map size, padding and pad value come
    from the registers: a MANUAL mode uses what SETFMATRIX, SET_IMG2COL_RPT and SET_IMG2COL_PADDING
    left there, an AUTO mode loads them from src first. The permissive profile reads everything from
    src. More than one repeat, and transposition, are not described and not simulated; a repeat
    register that was never loaded counts as one repeat, a padding register as 0.
    """
    p = _set_up(ops, FmatrixMode, registers)
    if ops.target.is_device and (p["repeatTime"] != 1 or p["transpose"]):
        raise NotImplementedError("repeatTime other than 1 and transpose are not simulated")
    *outer, c1, height, width, lanes = src.shape
    if not (0 < p["fmapH"] <= height and 0 < p["fmapW"] <= width):
        raise Refused(
            "feature-map",
            "the feature map is not empty and lies inside src",
            got=[("fmapH", p["fmapH"]), ("fmapW", p["fmapW"]), ("H", height), ("W", width)],
            fix="src.SetFmapH(H), src.SetFmapW(W)",
        )
    left, right, top, bottom = p["padList"]
    down, along = _positions(p, "fmapH", top, bottom, "H"), _positions(p, "fmapW", left, right, "W")
    places, taps = (*outer, down, along), (c1, p["filterH"], p["filterW"], lanes)
    rows, cols = (posM or 0) + np.arange(dst.shape[0]), (posK or 0) + np.arange(dst.shape[1])
    if max(rows, default=0) >= prod(places) or max(cols, default=0) >= prod(taps):
        raise Refused(
            "unrolled-range",
            "dst lies inside the unrolled matrix",
            got=[
                ("rows", f"{posM or 0}..{rows[-1]} of {prod(places)}"),
                ("columns", f"{posK or 0}..{cols[-1]} of {prod(taps)}"),
            ],
            fix="check posM and posK against the output size and the filter",
        )
    *batch, ho, wo = (i[:, None] for i in np.unravel_index(rows, places))
    channel, kh, kw, lane = np.unravel_index(cols, taps)
    h = ho * p["strideH"] + kh * p["dilationH"] - top
    w = wo * p["strideW"] + kw * p["dilationW"] - left
    inside = (h >= 0) & (h < p["fmapH"]) & (w >= 0) & (w < p["fmapW"])
    taken = src[(*batch, channel, np.where(inside, h, 0), np.where(inside, w, 0), lane)]
    if inside.all():
        dst[...] = taken
        return
    pad = p["padValue"]
    if pad is None:
        error = _not_loaded("PADDING", FmatrixMode, ops.target)
        beyond.lead("dst", np.zeros(0, np.int64), error, "own", "it holds 0, its reset value")
        pad = 0
    dst[...] = np.where(inside, taken, np.array(pad, dst.dtype))
