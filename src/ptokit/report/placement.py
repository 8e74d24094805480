"""Where the tiles of a program lie: what the memory map of a kernel and its page show."""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.ir.core import Module, Value
from ptokit.ir.types import MultiTileType, PlacedType
from ptokit.isa.targets import Target
from ptokit.passes.accesses import accesses_of
from ptokit.passes.liveness import live_ranges, order_of
from ptokit.report.memory_map import Map, Placed, Step


def map_of(kernel: str, module: Module, target: Target) -> Map:
    """The tiles of a program that have an address: where they lie, when they live, who uses them.

    Positions count on from one function to the next.
    """
    placed: list[Placed] = []
    steps: list[Step] = []
    loops: dict[tuple[int, int], None] = {}
    before = 0
    for function in module.functions:
        if function.body is None:
            continue
        accesses, order = accesses_of(function, target), order_of(function)
        uses: dict[Value, dict[int, bool]] = {}
        for op, touched in accesses.of.items():
            here = before + order.position[op]
            on_chip = [each for each in touched if not each.is_memory and not each.is_idle]
            if on_chip:
                name = op.insn.name if op.insn is not None else op.name
                steps.append(Step(here, name, op.location.line))
                loops.update(dict.fromkeys((before + a, before + b) for a, b in order.loops[op]))
            for each in on_chip:
                at = uses.setdefault(each.root, {})
                at[here] = at.get(here, True) and each.writes and not each.reads
        for live in live_ranges(function, accesses):
            handle = live.alloc.result
            assert isinstance(handle.type, PlacedType)
            spec = handle.type.spec
            address = accesses.known.number(live.alloc.operand("addr"))
            if address is not None:
                space = target.spaces[spec.loc]
                life = (before + live.start, before + live.stop)
                used = tuple(sorted(uses.get(handle, {}).items()))
                for name, at in _places(handle, address):
                    where = (space.memory, space.capacity, at, spec.nbytes)
                    placed.append(Placed(name, *where, str(spec), life, used))
        before += len(order.position) + sum(1 for op in order.position if op.regions)
    ordered = tuple(sorted(steps, key=lambda step: step.position))
    return Map(kernel, tuple(placed), ordered, tuple(loops))


def _places(handle: Value, address: int) -> Iterator[tuple[str, int]]:
    """The names and addresses of the tiles that a handle stands for."""
    if not isinstance(handle.type, MultiTileType):
        yield handle.name, address
        return
    for slot in range(handle.type.count):
        yield f"{handle.name}[{slot}]", address + slot * handle.type.stride
