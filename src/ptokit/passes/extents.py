"""How much memory the views of a function reach, for numbers it could be given.

A pointer says nothing about the array behind it; the views that are laid over it do. Whoever makes
up arguments for a function asks here how long its arrays have to be, and which of its numbers are
sizes of views rather than places in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ptokit.base.dataclass import dataclass
from ptokit.base.enums import Layout
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.tensors import Dims, in_boxes
from ptokit.ir.arithmetic import Number, Undefined
from ptokit.ir.attributes import EnumAttr, SymbolAttr
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.dialects.func import CALL
from ptokit.ir.dialects.memory import ADDPTR, MAKE_VIEW
from ptokit.ir.evaluate import evaluate
from ptokit.ir.types import ViewType


@dataclass
class Extents:
    """What the views of a function say about its parameters, by position."""

    elements: dict[int, int] = field(default_factory=dict[int, int])  # that a pointer must have
    sizes: set[int] = field(default_factory=set[int])  # the numbers that extents are made of


class _Known(NamedTuple):
    """What is known of a value: a number, or how far behind which parameter a pointer points."""

    number: Number | None = None
    params: frozenset[int] = frozenset()  # the parameters it was made of
    pointer: int | None = None


_NOTHING = _Known()


def extents(module: Module, function: Function, numbers: Sequence[Number | None]) -> Extents:
    """The extents of a function's views, as far as the values of its parameters tell them."""
    found = Extents()
    given = [
        _Known(0, frozenset({n}), n) if number is None else _Known(number, frozenset({n}))
        for n, number in enumerate(numbers)
    ]
    _Walk(module, found).function(function, given, ())
    return found


class _Walk:
    def __init__(self, module: Module, found: Extents) -> None:
        self._module = module
        self._found = found

    def function(
        self, function: Function, given: Sequence[_Known], callers: tuple[Function, ...]
    ) -> None:
        if function.body is not None and function not in callers:
            known = dict(zip(function.params, given, strict=True))
            self._block(function.body, known, (*callers, function))

    def _block(
        self, block: Block, known: dict[Value, _Known], callers: tuple[Function, ...]
    ) -> None:
        for op in block.ops:
            operands = [known.get(value, _NOTHING) for value in op.operands]
            if CALL.matches(op):
                name = op.attrs["callee"]
                callee = self._module.function(name.name) if isinstance(name, SymbolAttr) else None
                if callee is not None:
                    self.function(callee, operands, callers)
            elif MAKE_VIEW.matches(op):
                self._view(op, operands)
            elif ADDPTR.matches(op):
                known[op.result] = _behind(*operands)
            elif op.results:
                known.update(zip(op.results, _computed(op, operands), strict=True))
            for region in op.regions:
                self._block(region, known, callers)

    def _view(self, op: Op, operands: list[_Known]) -> None:
        labelled = list(zip(op.labels, operands, strict=True))
        shape = [each for label, each in labelled if label == "shape"]
        strides = [each for label, each in labelled if label == "strides"]
        self._found.sizes.update(*(each.params for each in shape))
        base = operands[0]
        numbers = [each.number for each in (base, *shape, *strides)]
        if base.pointer is None or None in numbers:
            return
        first, *rest = [int(n) for n in numbers if n is not None]
        sizes, steps = _lying(op, tuple(rest[: len(shape)]), tuple(rest[len(shape) :]))
        last = first + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True))
        reached = self._found.elements.get(base.pointer, 0)
        self._found.elements[base.pointer] = max(reached, last + 1)


def _lying(op: Op, shape: Dims, strides: Dims) -> tuple[Dims, Dims]:
    """The sizes and strides of a view as it lies in memory."""
    layout, made = op.attrs.get("layout"), op.result.type
    element = made.element.dtype if isinstance(made, ViewType) else None
    if element is None or not isinstance(layout, EnumAttr):
        return shape, strides
    return in_boxes(element, shape, strides, Layout[layout.value.upper()])


def _behind(pointer: _Known, offset: _Known) -> _Known:
    if pointer.number is None or offset.number is None:
        return pointer._replace(number=None)
    return pointer._replace(number=pointer.number + offset.number)


def _computed(op: Op, operands: list[_Known]) -> list[_Known]:
    """What arithmetic makes of what is known; nothing is known of other results."""
    params = frozenset[int]().union(*(each.params for each in operands))
    try:
        numbers = [each.number for each in operands if each.pointer is None]
        args = [n for n in numbers if n is not None]
        results = evaluate(op, args) if len(args) == len(operands) else None
    except Undefined:
        results = None
    return [_Known(n, params) for n in results or [None] * len(op.results)]
