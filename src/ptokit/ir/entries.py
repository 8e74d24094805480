"""What can be launched: the kernels of a module, and the clusters that two of them make.

A front end writes the two halves of a kernel for a cluster as two functions, `X_aic` for the cube
core and `X_aiv` for the vector cores, with the same parameters. Launching them together needs a
function that calls both; it is made here where the module does not have it. The vector half may
take one i32 more: the number of its core within the cluster, which only the launch knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.ir.attributes import EnumAttr, SymbolAttr, UnitAttr
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Function, Module, Value
from ptokit.ir.dialects.func import CALL, RETURN
from ptokit.ir.dialects.system import SUBBLOCK_IDX
from ptokit.ir.types import I32, I64, Type

# Attributes that make a function a kernel: today's, and those it had before.
_MARKS = ("pto.entry", "pto.kernel", "pto.aicore", "hacc.entry")
_HELPERS = ("pto.tileop.helper", "pto.ptodsl.subkernel_helper")
_HALVES = {"_aic": "cube", "_aiv": "vector"}


def is_marked(function: Function) -> bool:
    """Whether a function says that it is a kernel."""
    return any(mark in function.attrs for mark in _MARKS)


def is_helper(function: Function) -> bool:
    """Whether a front end has made a function of micro-code that tiles are handed to."""
    return any(mark in function.attrs for mark in _HELPERS)


def is_entry(function: Function, module: Module) -> bool:
    """Whether a function is a kernel: it says so, or no other is there for others to call.

    One that returns values and does not say so is there to be called.
    """
    if is_marked(function):
        return True
    if function.results:
        return False
    defined = [f for f in module.functions if f.body is not None]
    if any(map(is_marked, defined)):
        return False
    return defined == [function] or [f for f in defined if not f.is_private] == [function]


def kind_of(function: Function) -> str:
    """`cube`, `vector`, or the empty string when the function does not say."""
    given = function.attrs.get("pto.kernel_kind")
    return given.value if isinstance(given, EnumAttr) else ""


def with_clusters(module: Module) -> Module:
    """The module with a kernel for each pair of halves; the same one where there is none."""
    made = list(_clusters(module))
    if not made:
        return module
    functions = [*made, *module.functions]
    return Module(functions, module.attrs, module.location, names=module.names)


def _clusters(module: Module) -> Iterator[Function]:
    cube, vector = _HALVES
    for function in module.functions:
        name = function.name.removesuffix(cube)
        peer = module.function(name + vector)
        if name == function.name or peer is None or module.function(name) is not None:
            continue
        halves = (function, peer)
        is_pair = peer.input_types in _fitting(function) and all(
            half.body is not None and kind_of(half) == kind and not is_entry(half, module)
            for half, kind in zip(halves, _HALVES.values(), strict=True)
        )
        if is_pair:
            yield _calling(name, halves)


def _fitting(cube: Function) -> tuple[tuple[Type, ...], ...]:
    """The parameters that the other half of a cube function may have."""
    return cube.input_types, (*cube.input_types, I32)


def _calling(name: str, halves: tuple[Function, Function]) -> Function:
    """A kernel that runs each half on its kind of core."""
    place = halves[0].location
    block = Block([Value(p.name, p.type, None, place) for p in halves[0].params])
    builder = Builder(block, place)
    for half in halves:
        given = list(block.args)
        if len(half.params) > len(given):
            core = builder.op(SUBBLOCK_IDX.name, results=[I64]).result
            given.append(builder.op("arith.trunci", {"in": core}, [I32]).result)
        builder.op(CALL.name, {"operands": given}, attrs={"callee": SymbolAttr(half.name)})
    builder.op(RETURN.name)
    return Function(name, block, attrs={_MARKS[0]: UnitAttr()}, location=place)
