"""Values between the cube core and its vector cores, through the slots of a TPipe.

push(pipe, dot(a, b), UP)                          # in cube_section()
scores = pop(pipe, (64, 64), float32, UP)          # in vector_section(): this core's share
...
free(pipe, UP)                                     # after the last use of `scores`
"""

from __future__ import annotations

from typing import Any

from ptokit.base.diagnostics import fail
from ptokit.base.entry import public
from ptokit.base.enums import TileSplitAxis
from ptokit.frontend.api import TFREE, TPOP, TPUSH
from ptokit.frontend.events import get_subblockid
from ptokit.frontend.instruction import kind_of
from ptokit.frontend.lowering.calls import answer
from ptokit.frontend.lowering.tracer import Tracer
from ptokit.frontend.session import current
from ptokit.ir.dialects import system
from ptokit.values.matrix import boxed
from ptokit.values.tiles import Extent, Size, element_of, made, two_sizes, vector_type
from ptokit.values.value import Value

NO_SPLIT = TileSplitAxis.TILE_NO_SPLIT
# The axis that a split divides: 0 the rows, 1 the columns.
_DIVIDED = {
    TileSplitAxis.TILE_UP_DOWN: 0,
    TileSplitAxis.TILE_UP_DOWN_ODD: 0,
    TileSplitAxis.TILE_LEFT_RIGHT: 1,
    TileSplitAxis.TILE_LEFT_RIGHT_ODD: 1,
}


@public
def push(pipe: Any, value: Any, split: TileSplitAxis = NO_SPLIT) -> None:
    """Hand a value to the other side, waiting while all slots are in use.

    From a vector core it is this core's share of the entry.
    """
    if not isinstance(value, Value) or value.is_mask:
        raise fail(
            "value-operand",
            "what is pushed is a value",
            got=[("given", type(value).__name__)],
            fix="push(pipe, value, split); TPUSH[split](pipe, tile) pushes a tile",
        )
    TPUSH[split](_pipe(pipe), value.tile)


@public
def pop(pipe: Any, shape: tuple[int, int], element: Any, split: TileSplitAxis = NO_SPLIT) -> Value:
    """The next entry, of which `shape` says rows and columns; a vector core has its share of it.

    On the cube it is a matrix in L1, for `dot`. It lasts until `free`.
    """
    shape, kind = two_sizes(shape), element_of(element)
    if _is_for_cube(_pipe(pipe)):
        tile = made(boxed(kind, shape), shape)
    else:
        most = [-(-n // 2) if _DIVIDED.get(split) == axis else n for axis, n in enumerate(shape)]
        mine = Extent(most[0], most[1], share(shape, split)[2:])
        tile = made(vector_type(mine, kind), mine.valid)
    TPOP[split](pipe, tile)
    return Value(tile)


@public
def free(pipe: Any, split: TileSplitAxis = NO_SPLIT) -> None:
    """Give the slot of the oldest entry back, after its last use."""
    TFREE[split](_pipe(pipe))


@public
def share(shape: tuple[int, int], split: TileSplitAxis = NO_SPLIT) -> tuple[Size, Size, Size, Size]:
    """What of an entry belongs to this vector core: first row, first column, rows, columns.

    Of an odd number of rows or columns the first core has one more.
    """
    shape = two_sizes(shape)
    first: list[Size] = [0, 0]
    sizes: list[Size] = list(shape)
    axis = _DIVIDED.get(split)
    if axis is not None:
        half, core = -(-shape[axis] // 2), _number()
        first[axis] = core * half
        sizes[axis] = half - core if shape[axis] % 2 else half
    return first[0], first[1], sizes[0], sizes[1]


def _number() -> Any:
    machine = current()
    is_traced = isinstance(machine, Tracer)
    return answer(machine.emitter, system.SUBBLOCK_IDX) if is_traced else get_subblockid()


def _pipe(given: Any) -> Any:
    if kind_of(given) != "fifo":
        raise fail(
            "value-operand",
            "values go through a TPipe",
            got=[("given", type(given).__name__)],
            fix="pipe = TPipe[0, Direction.DIR_C2V, bytes of a slot, slots](memory, 0, 0)",
        )
    return given


def _is_for_cube(pipe: Any) -> bool:
    """Whether what is popped here goes to the cube: by the section in hand, or by the pipe."""
    core = current().core.kind
    return core == "cube" or (core == "mix" and not pipe.spec.carries_c2v)
