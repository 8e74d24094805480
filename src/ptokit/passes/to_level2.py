"""Into Level 2: every tile that is a value gets a buffer."""

from __future__ import annotations

from dataclasses import replace

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.enums import TileType
from ptokit.base.tiles import DYNAMIC
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.dialects.arith import CONSTANT
from ptokit.ir.dialects.conv import SET_PARAM
from ptokit.ir.flow import allocates, is_loop
from ptokit.ir.ordering import orders_pipes
from ptokit.ir.scratch import scratch_types
from ptokit.ir.types import (
    INDEX,
    BufferType,
    ConvTileType,
    ElidedType,
    PlacedType,
    PtrType,
    TileBufType,
    Type,
    ViewType,
    bytes_of,
)
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.targets import Target
from ptokit.passes.conv_values import check_unshared
from ptokit.passes.facts import Known
from ptokit.passes.to_asm import takes_whole_views
from ptokit.passes.values import continued, is_tile, kept


def to_level2(module: Module, target: Target) -> Module:
    """Level 1 to Level 2, in place."""
    for function in module.functions:
        if function.body is not None:
            _Buffers(function, target).run()
    return module


def buffer_type(type_: Type) -> Type:
    """The handle type for a tile that was a value."""
    return replace(type_, is_value=False) if isinstance(type_, BufferType) else type_


class _Buffers:
    """Gives buffers to the tiles of one function."""

    def __init__(self, function: Function, target: Target) -> None:
        self._function = function
        self._target = target
        self._homes: dict[Value, Value] = {}  # the buffer of every result
        self._continued = continued(function)
        self._kept = {op: kept(op) for op in function.walk() if is_loop(op)}

    def run(self) -> None:
        body = self._function.body
        assert body is not None
        for value in _values(body):
            value.type = buffer_type(value.type)
        self._function.results = tuple(buffer_type(t) for t in self._function.results)
        self._block(body)

    def _block(self, block: Block) -> None:
        ops: list[Op] = []
        made = {result for op in block.ops for result in op.results}
        for op in block.ops:
            if SET_PARAM.matches(op) and op.results:
                check_unshared(op, block, made)
                self._homes[op.result] = self._homes.get(op.operands[0], op.operands[0])
                op.results, op.result_labels = [], ()
            op.operands = [self._homes.get(v, v) for v in op.operands]
            if op in self._kept:
                self._copy_kept(op, ops)
            if op.insn is not None:
                self._instruction(op, ops)
            ops.append(op)
            for region in op.regions:
                self._block(region)
        block.ops = ops

    def _instruction(self, op: Op, ops: list[Op]) -> None:
        """Turn results into destinations and spell temporaries out."""
        insn = op.insn
        assert insn is not None
        kept: list[tuple[Value, str]] = []
        for result, label in zip(op.results, op.result_labels, strict=True):
            if not is_tile(result) or label in op.labels:
                kept.append((result, label))
                continue
            old = self._continued.get(result)
            if old is None:
                home = _alloc(result.type, result.name, op, ops)
            else:
                home = self._homes.get(old, old)
            self._homes[result] = home
            op.operands.append(home)
            op.labels += (label,)
        op.results = [r for r, _ in kept]
        op.result_labels = tuple(label for _, label in kept)
        for name, type_ in scratch_types(op, self._target).items():
            op.operands.append(_alloc(type_, "tmp", op, ops))
            op.labels += (name,)

    def _copy_kept(self, op: Op, ops: list[Op]) -> None:
        """Values that rounds may keep for ever move into buffers of the loop's own."""
        positions = self._kept[op]
        body, first = op.regions[-1], op.labels.index("inits") if positions else 0
        end, args = body.ops[-1], op.regions[0].args[-len(op.group("inits")) :]
        if not all(_is_plain_vector(args[n]) for n in positions):
            return  # nothing moves within other memories: placement will say so
        homes = {n: _copy(op.operands[first + n], args[n].name, op, ops) for n in positions}
        # Out of the way first: what one move overwrites another may still have to read, and what
        # is kept is moved onto itself.
        made: list[Op] = []
        left = {n: _copy(end.operands[n], end.operands[n].name, end, made) for n in positions}
        for n, home in homes.items():
            made.append(_move(left[n], home, end))
            op.operands[first + n] = end.operands[n] = home
        body.ops[-1:-1] = made


def _values(block: Block) -> list[Value]:
    found = [*block.args]
    for op in block.walk():
        found += op.results
        for region in op.regions:
            found += region.args
    return found


def _alloc(type_: Type, name: str, op: Op, ops: list[Op]) -> Value:
    """A buffer for a value; where its type leaves sizes to the run, all of it is valid."""
    builder, sizes = Builder(location=op.location), dict[str, Value]()
    if isinstance(type_, ConvTileType) and type_.spec.dynamic > 0:
        raise _refusal(op, "a tile made here has a run-time size that the text does not give")
    if isinstance(type_, TileBufType):
        spec = type_.spec
        most = {"valid_row": (spec.valid_row, spec.rows), "valid_col": (spec.valid_col, spec.cols)}
        sizes = {n: builder.constant(size) for n, (valid, size) in most.items() if valid == DYNAMIC}
    made = builder.op("pto.alloc_tile", sizes, [buffer_type(type_)], names=[name])
    ops += builder.block.ops
    return made.result


def _is_plain_vector(value: Value) -> bool:
    return isinstance(value.type, TileBufType) and value.type.spec.loc == TileType.Vec


def _move(src: Value, dst: Value, op: Op) -> Op:
    return Builder(location=op.location).instruction(INSTRUCTIONS["TMOV"], {"src": src, "dst": dst})


def _copy(value: Value, name: str, op: Op, ops: list[Op]) -> Value:
    """Another buffer with the same contents."""
    made = _alloc(value.type, name, op, ops)
    ops.append(_move(value, made, op))
    return made


def _refusal(op: Op, why: str) -> PtoError:
    return fail("convert-level", f"{op.name}: {why}", site=op.location)


# ---- from assembly lines -------------------------------------------------------------------------


def from_asm(module: Module) -> Module:
    """Assembly lines to Level 1: indexed operands become partitions of views, in place."""
    for function in module.functions:
        body = function.body
        assert body is not None
        head = Builder(location=function.location)
        views = {p: _view(p, head) for p in body.args if isinstance(p.type, ViewType)}
        ops: list[Op] = []
        for op in body.ops:
            _partition(op, views, ops)
            ops.append(op)
        body.ops = [*head.block.ops, *ops]
    return module


def _view(param: Value, builder: Builder) -> Value:
    """A view of the whole parameter, which becomes a pointer."""
    type_ = param.type
    assert isinstance(type_, ViewType)
    if DYNAMIC in type_.shape:
        raise fail("convert-level", f"%{param.name} has no static shape", site=param.location)
    shape = [builder.constant(n) for n in type_.shape]
    strides: list[Value] = []
    step = 1
    for extent in reversed(type_.shape):
        strides.insert(0, builder.constant(step))
        step *= extent
    param.type = PtrType(type_.element)
    made = builder.op(
        "pto.make_tensor_view",
        {"ptr": param, "shape": shape, "strides": strides},
        [ViewType("tensor_view", type_.shape, type_.element)],
        names=[f"{param.name}_view"],
    )
    return made.result


def _partition(op: Op, views: dict[Value, Value], ops: list[Op]) -> None:
    """Replace a parameter and its indices by a partition as large as the tile."""
    for param, view in views.items():
        if param not in op.operands:
            continue
        at = op.operands.index(param)
        count = sum(label == f"{op.labels[at]}.index" for label in op.labels)
        builder = Builder(location=op.location)
        type_ = view.type
        assert isinstance(type_, ViewType)
        offsets = op.operands[at + 1 : at + 1 + count] or [builder.constant(0)] * len(type_.shape)
        if takes_whole_views(op):
            sizes = type_.shape
        else:
            tile = next((v.type for v in (*op.operands, *op.results) if is_tile(v)), None)
            if not isinstance(tile, TileBufType) or len(offsets) != 2:
                raise _refusal(op, "global memory is indexed by row and column, next to a tile")
            sizes = (tile.spec.valid_row, tile.spec.valid_col)
        made = builder.op(
            "pto.partition_view",
            {
                "source": view,
                "offsets": [_index(v, builder) for v in offsets],
                "sizes": [builder.constant(n) for n in sizes],
            },
            [ViewType("partition_tensor_view", sizes, type_.element)],
            names=[f"{param.name}_part"],
        )
        ops += builder.block.ops
        op.operands[at : at + 1 + count] = [made.result]
        op.labels = op.labels[: at + 1] + op.labels[at + 1 + count :]


def _index(value: Value, builder: Builder) -> Value:
    if value.type == INDEX or isinstance(value.type, ElidedType):
        return value
    return builder.op("arith.index_cast", {"in": value}, [INDEX]).result


# ---- from Level 3 --------------------------------------------------------------------------------


def without_addresses(module: Module, target: Target) -> Module:
    """Level 3 to Level 2: addresses and flags go, unless tiles share bytes; in place."""
    for function in module.functions:
        if function.body is None:
            continue
        known = Known(target)
        placed: list[tuple[int, int, int, Op]] = []
        for op in function.walk():
            known.see(op)
            if op.insn is not None and op.insn.binds and op.operand("addr") is not None:
                raise _refusal(op, "an address bound at run time has no Level 2 form")
            if allocates(op):
                _check_apart(op, known, placed)
                _drop_address(op)
        _drop(function.body)
    return module


def _check_apart(op: Op, known: Known, placed: list[tuple[int, int, int, Op]]) -> None:
    address, type_ = known.number(op.operand("addr")), op.result.type
    if not isinstance(type_, PlacedType):
        return
    if address is None:
        raise _refusal(op, "its address is not a constant, so it may share bytes with another tile")
    loc, stop = int(type_.spec.loc), address + bytes_of(type_)
    for other_loc, first, last, other in placed:
        if other_loc == loc and first < stop and address < last:
            raise _refusal(
                op, f"it shares bytes with %{other.result.name}, which only addresses can say"
            )
    placed.append((loc, address, stop, op))


def _drop_address(op: Op) -> None:
    pairs = [(v, label) for v, label in zip(op.operands, op.labels, strict=True) if label != "addr"]
    op.operands = [v for v, _ in pairs]
    op.labels = tuple(label for _, label in pairs)


def _drop(block: Block) -> None:
    block.ops = [op for op in block.ops if not orders_pipes(op)]
    for op in block.ops:
        for region in op.regions:
            _drop(region)
    used = {v for op in block.walk() for v in op.operands}
    block.ops = [
        op for op in block.ops if not CONSTANT.matches(op) or any(r in used for r in op.results)
    ]
