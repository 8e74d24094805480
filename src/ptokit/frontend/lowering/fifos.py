"""FIFOs in a kernel being lowered: opening a TPipe, and the slots that its entries lie in.

An entry is a tile, or a slot in hand: a GlobalTensor made without memory, which TALLOC and TPOP
point at the slot.
"""

from __future__ import annotations

from typing import Any

from ptokit.base.enums import Direction
from ptokit.base.tensors import GlobalSpec
from ptokit.base.tiles import DYNAMIC
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.heap import Symbol
from ptokit.frontend.lowering.symbols import GlobalSymbol, PointerSymbol, layout_attribute, rank_of
from ptokit.ir.attributes import Attribute, BoolAttr, IntAttr
from ptokit.ir.core import Value
from ptokit.ir.types import I32, INDEX, OpaqueType, ScalarType, ViewType
from ptokit.isa.fifos import PipeSpec
from ptokit.isa.spec import Insn
from ptokit.isa.targets import Target

_I8 = ScalarType("i8")


class PipeSymbol(Symbol):
    """A TPipe of the kernel. `value` is its handle in the IR."""

    operand_kind = "fifo"

    def __init__(self, spec: PipeSpec, value: Value) -> None:
        self.spec = spec
        self.value = value

    def __repr__(self) -> str:
        return f"<pipe {self.spec}>"


def make_pipe(emitter: Emitter, target: Target, spec: PipeSpec, args: list[Any]) -> PipeSymbol:
    """Write the opening of a FIFO."""
    defaults: list[Any] = [None, 0, 0]
    memory, c2v, v2c = args + defaults[len(args) :]
    attrs: dict[str, Attribute] = {
        "dir_mask": IntAttr(int(spec.DirType), _I8),
        "slot_size": IntAttr(spec.SlotSize, I32),
        "slot_num": IntAttr(spec.SlotNum, I32),
    }
    # The consumer's slots: in UB for the vector cores, in L1 for the cube core.
    pairs = [
        ("local_addr", emitter.constant(int(c2v), I32)),
        ("peer_local_addr", emitter.constant(int(v2c), I32)),
    ]
    name = "pto.initialize_l2l_pipe"
    is_direct = target.fifos is not None and target.fifos.is_direct
    if not is_direct or spec.DirType >= Direction.DIR_C2V_GM:
        name = "pto.initialize_l2g2l_pipe"
        attrs["local_slot_num"] = IntAttr(spec.LocalSlotNum, I32)
        if not isinstance(memory, PointerSymbol):
            raise emitter.fail(
                "pipe",
                "the slots of this pipe lie in global memory",
                "pass an array parameter, or ptr(array, offset), as GM_SLOT_BUFFER",
            )
        pairs.insert(0, ("gm_addr", memory.value))
    attrs["flag_base"] = IntAttr(spec.FlagID, I32)
    if spec.IsNoSplit:
        attrs["nosplit"] = BoolAttr(True)
    if spec.EN_UNIT_FLAG:
        attrs["unit_flag"] = BoolAttr(True)
    op = emitter.emit(name, pairs, [("pipe", OpaqueType("pipe"))], attrs, hint="pipe")
    return PipeSymbol(spec, op.result)


def declare_slot(emitter: Emitter, spec: GlobalSpec) -> GlobalSymbol:
    """A GlobalTensor without memory: a view that a FIFO points at a slot."""
    if DYNAMIC in (*spec.shape, *spec.stride):
        raise emitter.fail(
            "tensor",
            "a GlobalTensor without an array has sizes and strides known at compile time",
            "write numbers in its Shape and Stride, or make it from an array parameter",
        )
    rank = rank_of(spec, spec.shape)
    sizes = {"shape": spec.shape[-rank:], "strides": spec.stride[-rank:]}
    pairs = [(label, emitter.constant(n, INDEX)) for label, ns in sizes.items() for n in ns]
    kind = ViewType("partition_tensor_view", sizes["shape"], ScalarType(spec.dtype.mlir))
    attrs = layout_attribute(spec, spec.stride)
    op = emitter.emit("pto.declare_view", pairs, [("result", kind)], attrs, hint="slot")
    symbol = GlobalSymbol(spec, op.result, op.result, (0,) * 5, spec.shape, spec.stride)
    symbol.is_slot = True

    def refuse(index: Any) -> Any:
        raise emitter.fail(
            "slice",
            "a slot of a FIFO is moved as a whole",
            "declare a GlobalTensor of the size that is moved",
        )

    symbol.lower_item = refuse
    return symbol


def take_slot(emitter: Emitter, insn: Insn, given: dict[str, Any]) -> None:
    """A GlobalTensor that a FIFO points at a slot becomes a view without memory of its own."""
    if not any(isinstance(value, PipeSymbol) for value in given.values()):
        return
    for name, value in given.items():
        if not isinstance(value, GlobalSymbol) or value.is_slot:
            continue
        if not insn.operand(name).writes or emitter.depth:
            raise emitter.fail(
                "pipe",
                f"{insn.name} of a GlobalTensor that has memory of its own cannot be lowered",
                "make it without an array: GlobalTensor[dtype, Shape[...], Stride[...]]()",
            )
        value.become(declare_slot(emitter, value.spec))
