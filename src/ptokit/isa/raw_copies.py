"""Copies that no tile instruction makes: kernels in C++ call them by their own names."""

from __future__ import annotations

from ptokit.base.layout import Array
from ptokit.base.tiles import BLOCK_BYTES
from ptokit.isa.facts import Ops
from ptokit.isa.rules import located, must, same_valid_shape
from ptokit.isa.services import Core, Poison
from ptokit.isa.spec import Asm, Attr, Cpp, Pipe, insn, out, src

_CALL = (
    "copy_cbuf_to_ubuf({dst}.data(), {src}.data(), {SubBlock}, {dst}.GetValidRow(), "
    "{dst}.GetValidCol() * sizeof(decltype({dst})::DType) / 32, "
    "({src}.Cols - {src}.GetValidCol()) * sizeof(decltype({src})::DType) / 32, "
    "({dst}.Cols - {dst}.GetValidCol()) * sizeof(decltype({dst})::DType) / 32)"
)


@insn(
    out("dst"),
    src("src", carries=True),
    attrs=[Attr("SubBlock", int, 0, "the vector core that receives it", choices=(0, 1))],
    pipe=Pipe.MTE1,
    targets="a5",
    rules=[
        located("Vec", "dst"),
        located("Mat", "src", id="source-location"),
        must("same-dtype")(
            "dst and src have the same element type",
            lambda o: o.dst.dtype == o.src.dtype,
            "view both as the same type",
        ),
        *same_valid_shape("dst", "src", rows="rows", cols="cols"),
        must("layout")(
            "rows lie side by side, without boxes",
            lambda o: all(each.is_row_major and not each.is_boxed for each in (o.dst, o.src)),
        ),
        must("blocks")(
            "the valid part of a row is a multiple of 32 bytes",
            lambda o: o.dst.vc * o.dst.itemsize % BLOCK_BYTES == 0,
            "copy whole blocks",
        ),
    ],
    # The micro-operation of that name takes pointers.
    asm=Asm(name="tcopy_cbuf_to_ubuf", is_stable=False),
    cpp=Cpp(calls={"dst src": (_CALL,)}),
    example={"dst": "Vec u8 4x64", "src": "Mat u8 4x64"},
)
def copy_cbuf_to_ubuf(dst: Array, src: Array, ops: Ops, poison: Poison, core: Core) -> None:
    """Copy rows of bytes from L1 of a cube core to the UB of one of its vector cores.

    The address of dst counts in the memory of that core. A core that is alone in its cluster
    receives what goes to core 0.
    """
    lost = poison.undefined("src")
    number = int(ops.attrs["SubBlock"])
    window = core.on_vector_core("dst", number)
    if window is not None:
        window.write(src)
        window.mark_defined()
        if lost is not None:
            window.poison(lost)
        poison.leave("dst", dst)
    elif number == core.subblock:
        dst[...] = src
        if lost is not None and lost.any():
            poison.poison_where("dst", lost)
    else:
        poison.leave("dst", dst)
