"""Binding and views: giving tiles their place, and the fix pipe its parameters. No data moves."""

from __future__ import annotations

import struct
from typing import Any

from ptokit.base import dtypes as dt
from ptokit.base.dtypes import DType
from ptokit.base.enums import TileType
from ptokit.isa.devices import DEVICES
from ptokit.isa.facts import Ops
from ptokit.isa.fixpipe import WORDS_STEP
from ptokit.isa.rules import Told, located, must, on_devices, where
from ptokit.isa.scalars import ADDRESS, FLOAT, signed
from ptokit.isa.services import Core, Refused, Registers
from ptokit.isa.spec import Asm, Attr, Operand, Pipe, View, insn, out, rule, scalar, src


def _is_tile(o: Any) -> bool:
    return o.obj.kind != "global"


def _is_pointer(o: Any) -> bool:
    return o.addr is not None and o.addr.kind == "object"


def _checked(o: Any) -> bool:
    """Whether the compile-time checks apply: the bracket form, on a tile, placed by hand."""
    return o.attrs["Addr"] is not None and o.mode == "manual" and _is_tile(o)


def _capacity(o: Any) -> int:
    """Bytes of the memory the tile lives in; 0 when the target has no such memory."""
    return 0 if o.obj.loc == TileType.Ctrl else o.target.spaces[o.obj.loc].capacity


@insn(
    Operand("obj", "inout", kinds=("tile", "conv", "global"), view=View.OBJECT, refused="SA-0089"),
    Operand("addr", "in", kinds=("scalar", "pointer"), view=View.OBJECT, takes=ADDRESS),
    attrs=[Attr("Addr", int, None, "byte address known at compile time, checked statically")],
    pipe=None,
    forms=["obj addr", "obj"],
    rules=[
        where(_is_tile)(
            must("tile-address")(
                "a tile takes its address once, in brackets or as an operand",
                lambda o: (o.addr is None) != (o.attrs["Addr"] is None),
                "TASSIGN(tile, address) or TASSIGN[address](tile)",
            ),
            must("addressable")(
                "the tile lives in a memory: a Ctrl tile has none",
                lambda o: o.mode == "auto" or o.obj.loc != TileType.Ctrl,
                "control tokens travel through TPUSH and TPOP; they are not bound to addresses",
            ),
            must("SA-0218", applies=lambda o: o.mode != "auto" and o.addr is not None)(
                "the address of a tile is an integer",
                lambda o: o.addr.kind == "scalar" and isinstance(o.addr.value, int),
                "give the byte offset inside the tile's memory space as an int",
            ),
        ),
        where(lambda o: not _is_tile(o))(
            must("SA-0053")(
                "a GlobalTensor is bound to a pointer, given as an operand",
                _is_pointer,
                "TASSIGN(tensor, array) or TASSIGN(tensor, ptr(array, offset))",
            ),
            must("SA-0054", applies=_is_pointer)(
                "the pointer's element type is the GlobalTensor's",
                lambda o: (
                    o.addr.dtype is o.obj.dtype
                    or (o.addr.dtype is dt.u8 and o.obj.dtype.stores_codes)
                ),
                "pass an array of that element type, or declare the GlobalTensor with it",
            ),
        ),
        where(_checked)(
            must("SA-0351")(
                "the target has this memory space (capacity > 0)", lambda o: _capacity(o) > 0
            ),
            must("SA-0352")(
                "the tile fits into its memory space (tile_size <= capacity)",
                lambda o: _capacity(o) == 0 or o.obj.nbytes <= _capacity(o),
            ),
            must("SA-0353", applies=lambda o: 0 < o.obj.nbytes <= _capacity(o))(
                "the tile ends inside its memory space (Addr + tile_size <= capacity)",
                lambda o: 0 <= o.attrs["Addr"] <= _capacity(o) - o.obj.nbytes,
            ),
            must("SA-0354", applies=lambda o: _capacity(o) > 0)(
                "the address has the alignment of the memory space (Addr % alignment == 0)",
                lambda o: o.attrs["Addr"] % o.target.spaces[o.obj.loc].alignment == 0,
            ),
        ),
    ],
    binds="obj",
    asm=Asm(ins=("obj", "addr"), outs=(), plain=frozenset({"sync", "l1"})),
    example={"obj": "Vec {T} 16x64", "Addr": "0x400"},
    more_examples=[{"obj": "Vec f32 16x64", "addr": "0x1000"}],
)
def TASSIGN(obj: Any, addr: Any, Addr: int | None, ops: Ops, core: Core) -> None:
    """Bind a tile to an on-chip address, or a GlobalTensor to a pointer. No data moves.

    `TASSIGN(tile, address)` takes an address known at run time and is not checked;
    `TASSIGN[address](tile)` takes it at compile time and checks that the memory space exists on
    the target, that the tile fits, that it ends inside the space, and the alignment. The address is
    a byte offset inside the memory of the tile's TileType; different memories do not overlap. In
    auto mode placement belongs to the compiler and binding a tile does nothing.

    A GlobalTensor keeps its shape and stride and takes the new pointer, in both modes: of its own
    element type, and only in the form with an operand. Lowering brings the instruction in where
    tiles of a program are given their places.

    The capacity of a memory space can be set for a launch under the name of its macro, as a
    compiler flag would: `defines={"PTO_UBUF_SIZE_BYTES": 262144}`.
    """
    if hasattr(obj, "point_to"):
        obj.point_to(addr)
    elif ops.mode == "manual":
        obj.bind(core.memory(obj.spec.loc), addr if Addr is None else Addr)


# ---- views ---------------------------------------------------------------------------------------


def _unbound(name: str, tile: Any, message: str) -> Refused:
    fix = f"bind {name} first: TASSIGN(tile, address), or use mode='auto'"
    return Refused("unbound-tile", message, got=[(name, tile)], fix=fix)


def _alias(dst: Any, source: Any, offset: int) -> None:
    """Lay dst over the storage of the source, `offset` bytes past its start."""
    if source.storage is None:
        raise _unbound("src", source, "src has an address that dst can share")
    dst.share(source, offset)


@insn(
    out("dst", kinds=("tile", "conv"), view=View.OBJECT, refused="SA-0090"),
    src("src", kinds=("tile", "conv"), view=View.OBJECT, refused="SA-0063"),
    pipe=Pipe.S,
    rules=where(lambda o: o.mode != "auto")(
        rule("SA-0063", "src is a Tile", lambda o: o.src.kind == "tile"),
        rule("SA-0090", "dst is a Tile", lambda o: o.dst.kind == "tile"),
        rule("SA-0303", "dst and src have the same TileType", lambda o: o.dst.loc == o.src.loc),
        must("SA-0305")(
            "dst and src have the same size in bytes",
            lambda o: o.dst.nbytes == o.src.nbytes,
            lambda o: f"declare dst with {o.src.nbytes} bytes; for a part of src use TSUBVIEW",
        ),
        must("SA-0301", applies=lambda o: "conv" not in (o.dst.kind, o.src.kind))(
            "dst and src are both boxed or both unboxed", lambda o: o.dst.is_boxed == o.src.is_boxed
        ),
    ),
    binds="dst",
    renames="src",
    example={"dst": "Vec {T} 32x32", "src": "Vec {T} 16x64"},
)
def TRESHAPE(dst: Any, src: Any) -> None:
    """Let dst denote the bytes of src under its own type. No data moves.

    Both names share the storage from now on: a write through one is seen through the other. The
    bits are reinterpreted, not converted; the valid region is the one dst declares, and nothing is
    filtered or filled. In auto mode the call is an alias declaration and is not checked, also
    between a Tile and a ConvTile.
    """
    _alias(dst, src, 0)


def _plain_offset(o: Any) -> int:
    """Elements of src in front of (rowIdx, colIdx), by its plain strides; boxes do not count."""
    return o.rowIdx.value * o.src.row_stride + o.colIdx.value * o.src.col_stride


def _is_window(o: Any) -> bool:
    """Whether every valid element of dst lies where src keeps the element it stands for."""
    unboxed = (o.src.layout, o.dst.layout) in (("ND", "ND"), ("DN", "DN"))
    same_pitch = o.src.row_stride == o.dst.row_stride and o.src.col_stride == o.dst.col_stride
    if unboxed and same_pitch and o.src.dtype is o.dst.dtype and not o.src.dtype.is_packed:
        return True
    row, col, rows, cols = o.rowIdx.value, o.colIdx.value, o.dst.vr, o.dst.vc
    theirs = o.src.axis_map(o.src.vr, o.src.vc).offsets[row : row + rows, col : col + cols]
    own = o.dst.axis_map(rows, cols).offsets[:rows, :cols]
    if theirs.shape != own.shape:
        return True  # it reaches beyond src, which has a rule of its own
    start = 8 * o.src.itemsize * _plain_offset(o)
    return bool((theirs * o.src.dtype.bits == start + own * o.dst.dtype.bits).all())


def _starts_another_type(o: Any) -> bool:
    """A view of the bytes of src from the first one on, as elements of another type."""
    return o.rowIdx.value == o.colIdx.value == 0 and o.src.dtype is not o.dst.dtype


@insn(
    out("dst", view=View.OBJECT),
    src("src", view=View.OBJECT),
    scalar("rowIdx", signed(32)),
    scalar("colIdx", signed(32)),
    pipe=None,
    rules=[
        rule(
            "same-location", "dst and src have the same TileType", lambda o: o.dst.loc == o.src.loc
        ),
        must("inside")(
            "the valid region of dst, moved by (rowIdx, colIdx), lies inside src",
            lambda o: (
                0 <= o.rowIdx.value <= o.src.rows - o.dst.vr
                and 0 <= o.colIdx.value <= o.src.cols - o.dst.vc
            ),
            "shrink the valid region of dst, or start further up or left",
        ),
        where(lambda o: o.mode == "auto", prefix="in auto mode ")(
            must("same-order")(
                "dst and src have the same BLayout", lambda o: o.dst.blayout == o.src.blayout
            ),
            must("inside-valid")(
                "the valid region of dst is no larger than that of src",
                lambda o: o.src.vr >= o.dst.vr and o.src.vc >= o.dst.vc,
                otherwise="the view covers bytes past the valid region of src",
            ),
        ),
        must("window", DEVICES)(
            "dst steps through memory as src does, and the offset by plain strides leads to "
            "element (rowIdx, colIdx) of src",
            _is_window,
            "give dst the Cols of a row-major src or the Rows of a column-major one; take a "
            "part of a boxed tile with TEXTRACT",
            Told("the bytes from the first of src on are elements of dst", _starts_another_type),
        ),
    ],
    binds="dst",
    renames="src",
    # The name it had belongs to an operation of its own today, which makes the window itself.
    asm=Asm(ins=("src", "rowIdx", "colIdx"), outs=("dst",), aliases=("subview",), is_stable=False),
    example={"dst": "Vec {T} 16x64 valid 8x32", "rowIdx": "2", "colIdx": "8"},
)
def TSUBVIEW(dst: Any, src: Any, rowIdx: int, colIdx: int, ops: Ops) -> None:
    """Bind dst to the part of src that starts at (rowIdx, colIdx). No data moves.

    dst is a window onto src: writes through one are seen through the other, and dst keeps its own
    valid region. The window starts rowIdx * RowStride + colIdx * ColStride elements past src, by
    the plain strides also for boxed tiles, and is exact only where dst steps through memory as src
    does: the same Cols for row-major tiles (or one row), the same Rows for column-major ones (or
    one column), whole columns of boxes for boxed ones. Vector instructions and transfers also want
    its address to be a multiple of 32 bytes.
    """
    _alias(dst, src, _plain_offset(ops) * src.spec.itemsize)


_SCALES_OF = {TileType.Left: TileType.ScaleLeft, TileType.Right: TileType.ScaleRight}


@insn(
    out("dst", view=View.OBJECT, note="ScaleLeft or ScaleRight tile", refused="SA-0090"),
    src("src", view=View.OBJECT, note="the Left or Right tile it scales", refused="SA-0063"),
    pipe=None,
    targets="a5",
    rules=[
        must("scale-pair")(
            "dst is a ScaleLeft tile for a Left src, a ScaleRight tile for a Right src",
            lambda o: _SCALES_OF.get(o.src.loc) == o.dst.loc,
        ),
        must("auto-only", "a5")(
            "the scale address is asked for in auto mode",
            lambda o: o.mode == "auto",
            "in manual mode bind it yourself: TASSIGN(scale, data_address >> 4)",
        ),
    ],
    binds="dst",
    asm=Asm(forms=frozenset({"l2"})),
    example={"dst": "ScaleLeft f8e8m0 32x2", "src": "Left f8e4m3 32x64"},
)
def TGET_SCALE_ADDR(dst: Any, src: Any, ops: Ops, core: Core) -> None:
    """Bind an MX scale tile to the place that belongs to a Left or Right tile.

    The cube finds the scales of a block-scaled operand at a sixteenth of the operand's address, in
    the scale memory that goes with it. In auto mode the compiler keeps the two together and the
    scale tile keeps the storage it was given.
    """
    if ops.mode == "manual":
        dst.bind(core.memory(dst.spec.loc), src.address >> 4)


# ---- parameters of the fix pipe ------------------------------------------------------------------


@insn(
    scalar("preQuantScalar", FLOAT, note="the scale"),
    attrs=[Attr("OutType", DType, dt.f32, "element type of the results to come")],
    pipe=Pipe.S,
    targets="a2a3 a5 kirin9030",
    rules=[
        must("scale-sign", DEVICES)(
            "the scale is not negative: its sign would spill into offset and sign fields",
            lambda o: o.preQuantScalar.value >= 0,
            "fold the sign into the data, for example into one of the matmul operands",
        ),
    ],
    sets="QUANT_PRE",
    asm=Asm(
        syntax={"set_quant_scalar": "(%preQuantScalar : T(preQuantScalar)) [?{id}?] {}"},
        types={"id": "i32"},  # of the pipe whose entries it scales
    ),
)
def SET_QUANT_SCALAR(preQuantScalar: float, OutType: DType, registers: Registers) -> None:
    """Set the scale of the fix-pipe transfers that take it from a register (TPUSH with a config).

    The register holds the float32 bits of the scale, of which the hardware uses the upper 19; for
    8-bit results bit 46 says whether they are int8 (set) or uint8 (clear). It keeps its value until
    it is set again.
    """
    (word,) = struct.unpack("<I", struct.pack("<f", preQuantScalar))
    if OutType.itemsize == 1 and OutType is dt.i8:
        word |= 1 << 46
    registers["QUANT_PRE"] = word


@insn(
    src("fpTile", view=View.OBJECT, note="one uint64 parameter word per column"),
    pipe=Pipe.S,
    targets="a2a3 a5 kirin9030",
    rules=[
        located("Scaling", "fpTile"),
        must("fpc-alignment")(
            "the address of fpTile is a multiple of 128 bytes: lower bits are dropped",
            lambda o: o.mode == "auto" or o.fpTile.addr % WORDS_STEP == 0,
            "bind the Scaling tile to a multiple of 128",
            on_devices("the lower bits are dropped"),
        ),
    ],
    sets="FPC",
    asm=Asm(syntax={"set_quant_vector": "(%fpTile : T(fpTile)) [?{id}?] {}"}, types={"id": "i32"}),
    example={"fpTile": "Scaling u64 1x16"},
)
def SET_QUANT_VECTOR(fpTile: Any, registers: Registers) -> None:
    """Point the fix pipe at a vector of quantisation words, one per column of the results.

    The words are read by the transfers that use them, not here. The register holds the address in
    units of 128 bytes from bit 8 on, until it is set again.
    """
    if fpTile.storage is None:
        raise _unbound("fpTile", fpTile, "fpTile has an address")
    registers["FPC"] = (fpTile.address >> 7) << 8
    registers["FPC_TILE"] = fpTile  # in auto mode the address alone does not find it
