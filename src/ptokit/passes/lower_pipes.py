"""FIFOs as front ends write them, with the handles that machine and C++ have.

A front end tells its pipes apart by ids, leaves flags and defaults to the tool, and gets entries as
results. Behind this pass a pipe is a value, entries are declared before they are filled, and the
scales of a conversion are set where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping

from ptokit.base.dtypes import DType
from ptokit.ir.attributes import Attribute, BoolAttr, IntAttr
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.dialects.fifo import DECLARE_GLOBAL, GM_PIPE
from ptokit.ir.dialects.memory import MAKE_VIEW
from ptokit.ir.fifos import (
    Epilogue,
    epilogue_of,
    fifo_of,
    front_insn,
    is_transfer,
    number_of,
    opens_pipe,
    slots_of,
)
from ptokit.ir.instructions import attribute_for
from ptokit.ir.rewrite import Cloner
from ptokit.ir.types import I32, OpaqueType, ScalarType, TileBufType, ViewType
from ptokit.isa.pipes import TFREE, TPUSH
from ptokit.isa.spec import Insn
from ptokit.isa.targets import Target
from ptokit.passes.pipe_groups import CONSUMERS, Group, flag_bases, groups_of

_I8 = ScalarType("i8")
_CONFIG = next(attr for attr in TPUSH.attrs if attr.name == "Config")


def uses_pipes(module: Module) -> bool:
    """Whether a program has pipes that are not in their long form."""
    return any(
        DECLARE_GLOBAL.matches(op) or (opens_pipe(op) and (not op.results or epilogue_of(op)))
        for op in module.walk()
    )


def lower_pipes(module: Module, target: Target) -> None:
    """Rewrite the pipes of a module, about which nobody complains, in place."""
    groups = groups_of(module)
    bases = flag_bases(groups)
    by_opening = {end.op: group for group in groups for end in group.ends}
    for function in module.functions:
        if function.body is not None:
            _Lowering(function, target, by_opening, bases).block(function.body)


class _Lowering:
    """One function on its way to handles."""

    def __init__(
        self,
        function: Function,
        target: Target,
        groups: Mapping[Op, Group],
        bases: Mapping[Group, int | None],
    ) -> None:
        self._target = target
        self._groups, self._bases = groups, bases
        self._openings = {
            number_of(op, "id"): op for op in function.walk() if opens_pipe(op) and not op.results
        }
        self._handles: dict[int, Value] = {}
        self._configs: dict[Value, Epilogue] = {
            op.result: epilogue
            for op in function.walk()
            if opens_pipe(op) and op.results and (epilogue := epilogue_of(op))
        }
        self._set: Op | None = None  # the instruction that last gave scales, in this block

    def block(self, block: Block) -> None:
        """Rewrite a block; scales are given and used in one."""
        before, self._set, scales = self._set, None, dict[int, Op]()
        ops: list[Op] = []
        for op in block.ops:
            builder = Builder(location=op.location)
            self._op(op, builder, scales)
            ops += builder.block.ops
            for region in op.regions:
                self.block(region)
        block.ops, self._set = ops, before

    def _op(self, op: Op, builder: Builder, scales: dict[int, Op]) -> None:
        if opens_pipe(op) and not op.results:
            self._open(op, builder)
        elif (insn := front_insn(op)) is not None:
            self._transfer(op, insn, builder, scales)
        elif DECLARE_GLOBAL.matches(op):
            self._declare_view(op.result, None, builder)
        elif op.insn is not None and "id" in op.attrs and op.insn.sets:
            scales[number_of(op, "id")] = op
            builder.block.ops.append(self._remember(self._scales(op)))
        else:
            if is_transfer(op) and op.insn is TPUSH and fifo_of(op) in self._configs:
                op.attrs["config"] = _config(self._configs[fifo_of(op)])
            builder.block.ops.append(op)

    # ---- pipes ---------------------------------------------------------------------------------

    def _open(self, op: Op, builder: Builder) -> None:
        mask, slots = number_of(op, "dir_mask"), slots_of(op)
        group = self._groups[op]
        attrs: dict[str, Attribute] = {
            "dir_mask": IntAttr(mask, _I8),
            "slot_size": IntAttr(number_of(op, "slot_size"), I32),
            "slot_num": IntAttr(slots, I32),
            "flag_base": IntAttr(self._bases[group] or 0, I32),
        }
        if group.is_whole is not None:
            attrs["nosplit"] = BoolAttr(group.is_whole)
        buffers = [op.operand(label) for bit, label in CONSUMERS if mask & bit]
        names = ("local_addr", "peer_local_addr")
        operands = {n: v for n, v in zip(names, buffers, strict=False) if v is not None}
        memory = op.operand("gm_slot_tensor") or self._ring(op)
        name = "pto.initialize_l2l_pipe"
        if memory is not None:
            name, operands = "pto.initialize_l2g2l_pipe", {"gm_addr": memory} | operands
            if "local_addr" in operands:
                attrs["local_slot_num"] = IntAttr(number_of(op, "local_slot_num", slots), I32)
        id = number_of(op, "id")
        made = builder.op(
            name, operands, [OpaqueType("pipe")], attrs, names=[f"pipe{id}" if id else "pipe"]
        )
        self._handles[id] = made.result
        if (epilogue := epilogue_of(op)) is not None:
            self._configs[made.result] = epilogue

    def _ring(self, op: Op) -> Value | None:
        """The memory of the slots; where they lie with the consumer, none."""
        rules = self._target.fifos
        return None if rules is not None and rules.is_direct else op.operand("gm_slot_buffer")

    def _frees_itself(self, pipe: Value) -> bool:
        """Whether slots are given back by pops, and a TFREE would do so again."""
        rules, opening = self._target.fifos, pipe.owner
        is_gm = isinstance(opening, Op) and GM_PIPE.matches(opening)
        return rules is not None and rules.is_direct and is_gm

    # ---- entries -------------------------------------------------------------------------------

    def _transfer(self, op: Op, insn: Insn, builder: Builder, scales: dict[int, Op]) -> None:
        id = number_of(op, "id")
        pipe = self._handles[id]
        if insn is TFREE and op.operand("entry") is None and self._frees_itself(pipe):
            return  # the pop was a copy
        attrs = {"split": op.attrs["split"]}
        if insn is TPUSH and pipe in self._configs:
            attrs["config"] = _config(self._configs[pipe])
            if id in scales and scales[id] is not self._set:
                again = Cloner().op(scales[id])
                builder.block.ops.append(self._remember(again))
                scales[id] = again
        entry = op.results[0] if op.results else op.operand("entry")
        if op.results:
            self._declare(op, op.results[0], builder)
        assert insn.asm is not None
        label = "tile" if entry is not None and isinstance(entry.type, TileBufType) else "gmTensor"
        operands = {label: entry, "pipe": pipe, "subBlockId": op.operand("subBlockId")}
        operands = {n: v for n, v in operands.items() if n in insn.names}  # a TFREE takes no tile
        builder.op(f"pto.{next(iter(insn.asm.syntax))}", operands, [], attrs)

    def _declare(self, op: Op, entry: Value, builder: Builder) -> None:
        """Something without memory of its own, which the transfer gives a place."""
        if isinstance(entry.type, ViewType):
            slot = self._openings[number_of(op, "id")].operand("gm_slot_tensor")
            self._declare_view(entry, slot, builder)
            return
        self._made(builder.op("pto.declare_tile", {}, [entry.type]), entry)
        rows, cols = op.operand("valid_row"), op.operand("valid_col")
        if rows is not None and cols is not None:
            sizes = {"source": entry, "valid_row": rows, "valid_col": cols}
            builder.op("pto.set_validshape", sizes)

    def _declare_view(self, entry: Value, slot: Value | None, builder: Builder) -> None:
        """A view with the strides of a slot; what its type leaves open is as large as the slot."""
        assert isinstance(entry.type, ViewType)
        owner = slot.owner if slot is not None else None
        known = owner if isinstance(owner, Op) and MAKE_VIEW.matches(owner) else None
        sizes = known.group("shape") if known else [None] * len(entry.type.shape)
        shape = [
            builder.constant(n) if n >= 0 or size is None else size
            for n, size in zip(entry.type.shape, sizes, strict=True)
        ]
        strides = known.group("strides") if known else _packed(entry.type.shape, builder)
        made = builder.op("pto.declare_view", {"shape": shape, "strides": strides}, [entry.type])
        self._made(made, entry)

    def _made(self, op: Op, value: Value) -> None:
        """An operation makes a value that there is already."""
        op.results, value.owner = [value], op

    # ---- scales --------------------------------------------------------------------------------

    def _remember(self, setter: Op) -> Op:
        self._set = setter
        return setter

    def _scales(self, op: Op) -> Op:
        """The instruction with the element type of the results, which the consumer knows."""
        opening = self._openings[number_of(op, "id")]
        popped = popped_type(self._groups[opening])
        assert op.insn is not None
        for attr in op.insn.attrs:
            if attr.type is DType and popped is not None:
                op.attrs["outType"] = attribute_for(attr, popped.spec.dtype)
        del op.attrs["id"]
        return op


def popped_type(group: Group) -> TileBufType | None:
    """The type of the tiles that come out of a FIFO."""
    for end in group.ends:
        for user in end.users:
            type_ = user.results[0].type if user.results else None
            if isinstance(type_, TileBufType):
                return type_
    return None


def _config(epilogue: Epilogue) -> Attribute:
    return attribute_for(_CONFIG, epilogue.params)


def _packed(shape: tuple[int, ...], builder: Builder) -> list[Value]:
    """The strides of a view without gaps."""
    strides, step = list[int](), 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return [builder.constant(n) for n in strides]
