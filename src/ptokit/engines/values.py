"""Run-time values of a program: views of the user's arrays, and arguments turned into them.

Numbers are Python numbers, tiles are the machine's tiles, pointers the machine's pointers. Only
views need something of their own: the text counts one to five dimensions, the machine always five.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import Layout
from ptokit.base.location import Location
from ptokit.base.tensors import GlobalSpec, in_boxes, strides_in_use
from ptokit.base.tiles import DYNAMIC
from ptokit.ir.arithmetic import bits_of, round_to, wrap
from ptokit.ir.core import Function, Value
from ptokit.ir.types import PtrType, ScalarType, ShapedType, Type, ViewType, is_column
from ptokit.isa.sort_records import MrgSortExecutedNumList
from ptokit.machine.foreign import as_number
from ptokit.machine.objects import GlobalObject, Pointer, pointer

Frame = dict[Value, Any]  # what each value of a running function is
COUNTS = "vector<4xi16>"  # how many records a merge took from each list


class Form:
    """What a view is apart from its pointer; strides in elements. Views of one form share it."""

    __slots__ = ("_specs", "dtype", "is_given", "layout", "shape", "stride")

    def __init__(
        self,
        dtype: DType,
        shape: tuple[int, ...],
        stride: tuple[int, ...],
        layout: Layout = Layout.ND,
        is_given: bool = True,
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.stride = stride
        self.layout = layout
        self.is_given = is_given  # the layout was written; else it follows from the strides
        self._specs: dict[bool, GlobalSpec] = {}

    def sized(self, sizes: tuple[int, ...]) -> Form:
        """The form of a window of so many elements."""
        return Form(self.dtype, sizes, self.stride, self.layout, self.is_given)

    def spec(self, in_columns: bool) -> GlobalSpec:
        """The view as the machine knows it; `in_columns`: it is moved from or to a column tile."""
        found = self._specs.get(in_columns)
        if found is None:
            layout = self.layout
            if in_columns and not self.is_given and is_column(self.shape, self.stride):
                layout = Layout.DN
            found = self._specs[in_columns] = _five(self.dtype, self.shape, self.stride, layout)
        return found


class View:
    """A view of global memory."""

    __slots__ = ("_tensors", "form", "pointer")

    def __init__(self, pointer: Pointer, form: Form) -> None:
        self.pointer = pointer
        self.form = form
        self._tensors: list[GlobalObject | None] = [None, None]

    def part(self, offsets: Sequence[int], form: Form) -> View:
        """A window of the view: where it starts, and its form."""
        skipped = 0
        for offset, stride in zip(offsets, self.form.stride, strict=True):
            skipped += offset * stride
        # Pointers move by bytes, of which 4-bit elements share one.
        return View(self.pointer.moved(skipped // 2 if form.dtype.is_packed else skipped), form)

    def tensor(self, in_columns: bool = False) -> GlobalObject:
        """The view as an operand of an instruction."""
        found = self._tensors[in_columns]
        if found is None:
            spec = self.form.spec(in_columns)
            found = GlobalObject(spec, self.pointer, spec.shape, spec.stride)
            self._tensors[in_columns] = found
        return found


@cache
def _five(
    element: DType, shape: tuple[int, ...], stride: tuple[int, ...], layout: Layout
) -> GlobalSpec:
    shape, stride = in_boxes(element, shape, stride, layout)
    missing = 5 - len(shape)
    whole = max((n * s for n, s in zip(shape, stride, strict=True)), default=1)
    shape, stride = (1,) * missing + shape, (max(whole, 1),) * missing + stride
    return GlobalSpec.of(element, shape, strides_in_use(shape, stride), layout)


class SlotView(GlobalObject):
    """A view that has no memory until a FIFO points it at a slot."""

    __slots__ = ("declared", "form")

    def __init__(self, form: Form, declared: Location) -> None:
        spec = form.spec(in_columns=False)
        super().__init__(spec, None, spec.shape, spec.stride)
        self.form = form
        self.declared = declared  # where, for the message below

    def data(self) -> Pointer:
        if self.pointer is None:
            raise fail(
                "unbound-tensor",
                "this view is used before it points at a slot",
                got=[("view", self.spec)],
                fix="TALLOC or TPOP it first",
                site=self.declared,
            )
        return self.pointer

    def part(self, offsets: Sequence[int], form: Form) -> View:
        """A window of the slot in hand."""
        return View(self.data(), self.form).part(offsets, form)


def layout_of(shape: tuple[int, ...], stride: tuple[int, ...]) -> Layout:
    """Column-major when the rows are adjacent and the columns are not, else row-major."""
    return Layout.DN if len(stride) > 1 and stride[-2] == 1 != stride[-1] else Layout.ND


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides))[: len(shape)]


# ---- arguments ---------------------------------------------------------------------------------


def bind_arguments(function: Function, args: tuple[Any, ...]) -> list[Any]:
    """Turn what a caller passes into run-time values, one per parameter."""
    if len(args) != len(function.params):
        wanted = ", ".join(f"%{p.name}: {p.type}" for p in function.params)
        raise fail(
            "argument-count",
            f"@{function.name} takes {len(function.params)} arguments",
            got=[("given", len(args))],
            fix=f"pass ({wanted})",
            site=function.location,
        )
    return [_argument(p, a) for p, a in zip(function.params, args, strict=True)]


def _argument(param: Value, given: Any) -> Any:
    type_ = param.type
    if isinstance(type_, ScalarType):
        return _scalar(param, type_, given)
    if isinstance(type_, PtrType):
        return _pointer(param, type_.element, given)
    if isinstance(type_, ViewType | ShapedType) and not (
        isinstance(type_, ShapedType) and type_.kind != "memref"
    ):
        return _view(param, type_, given)
    if str(type_) == COUNTS:
        return _counts(param, given)
    raise fail(
        "argument-type",
        f"%{param.name} of type {type_} cannot be passed from outside",
        fix=f"kernel parameters are pointers, memrefs in global memory, numbers and {COUNTS}",
        site=param.location,
    )


def counts_of(numbers: Sequence[int]) -> MrgSortExecutedNumList:
    """Four counts of executed records; one number stands for all of them."""
    found = MrgSortExecutedNumList()
    counts = [number & 0xFFFF for number in numbers]
    found.set(counts * 4 if len(counts) == 1 else counts)
    return found


def _counts(param: Value, given: Any) -> MrgSortExecutedNumList:
    """Counts by value: whoever passes them does not see what becomes of them."""
    try:
        numbers = np.asarray(given)
    except ValueError:  # of rows that are not equally long
        numbers = np.zeros(0, np.int16)
    if numbers.dtype.kind not in "iu" or numbers.shape != (4,):
        raise fail(
            "argument-type",
            f"%{param.name} is a list of four counts, {COUNTS}",
            got=[("given", f"{type(given).__name__} of shape {numbers.shape}")],
            fix="np.zeros(4, np.int16)",
            site=param.location,
        )
    return counts_of(numbers.tolist())


def _scalar(param: Value, type_: ScalarType, given: Any) -> Any:
    given = as_number(given, f"%{param.name}")
    if isinstance(given, np.number):
        given = given.item()
    if not isinstance(given, int | float) or (isinstance(given, float) and not type_.is_float):
        raise fail(
            "argument-type",
            f"%{param.name} is a number of type {type_}",
            got=[("given", type(given).__name__)],
            site=param.location,
        )
    if type_.is_float:
        with suppress(OverflowError):
            return round_to(float(given), type_)
    bits = bits_of(type_)
    # Types of the text have no sign: both readings of the bits are numbers of the type.
    low, high = -(1 << bits - 1), (1 << bits) - 1
    if not type_.is_float and low <= given <= high:
        return wrap(int(given), bits)
    raise fail(
        "argument-range",
        f"%{param.name} is a number of type {type_}",
        got=[("given", f"a number of {int(given).bit_length()} bits")],
        fix="a number that a float can hold" if type_.is_float else f"a number in {low}..{high}",
        site=param.location,
    )


def _pointer(param: Value, element: ScalarType, given: Any) -> Pointer:
    wanted = element.dtype
    if wanted is None or isinstance(given, int | float):
        raise fail(
            "argument-type",
            f"%{param.name} is an array of {element}",
            got=[("given", type(given).__name__)],
            site=param.location,
        )
    try:
        at = pointer(given, wanted)
    except PtoError as error:  # nothing the machine can point to
        (found,) = error.diagnostics
        raise fail(
            "argument-type",
            f"%{param.name} is an array of {element}: {found.message}",
            got=found.got,
            fix=found.fix,
            site=param.location,
        ) from None
    if at.dtype is not wanted:
        raise fail(
            "argument-type",
            f"%{param.name} is an array of {element}",
            got=[("element type given", at.dtype.mlir)],
            fix=f"pass an array of {wanted.np.name}",
            site=param.location,
        )
    at.buffer.title = at.buffer.title or f"%{param.name}"
    return at


def _view(param: Value, type_: ViewType | ShapedType, given: Any) -> View:
    at = _pointer(param, type_.element, given)
    shape = type_.shape
    if DYNAMIC in shape:
        actual: tuple[int, ...] = tuple(np.shape(at.buffer.owner))
        if len(actual) != len(shape):
            raise fail(
                "gm-array",
                f"%{param.name} has {len(shape)} dimensions",
                got=[("shape given", actual)],
                site=param.location,
            )
        shape = tuple(a if n == DYNAMIC else n for n, a in zip(shape, actual, strict=True))
    return View(at, Form(type_.element.dtype or dtype("i8"), shape, dense(shape)))


def element_of(type_: Type, site: Location) -> DType:
    """The element type of a view, pointer or memref."""
    assert isinstance(type_, PtrType | ViewType | ShapedType)
    found = type_.element.dtype
    if found is None:
        raise fail("element-type", f"{type_.element} is no element type", site=site)
    return found
