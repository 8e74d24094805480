"""The gate of global memory: which arrays may become it, and which bytes are then theirs.

Whatever a program is given as global memory - an argument of a kernel, the array of a GlobalTensor,
a pointer, slots of a FIFO, a file on the command line - comes through `as_array` and becomes a
`GmBuffer`; no engine reads or writes a byte that the buffer does not `hold`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from itertools import combinations
from typing import Any, cast

import numpy as np

from ptokit.base.diagnostics import Diagnostic, PtoError, fail, where
from ptokit.base.dtypes import DType, dtype
from ptokit.base.layout import Array, AxisMap
from ptokit.base.location import Location
from ptokit.base.namedtuple import NamedTuple
from ptokit.machine.access import extents
from ptokit.machine.foreign import as_numpy, short_of
from ptokit.machine.memory import Storage
from ptokit.machine.regions import Ranges, Rows, within

_KNOWN: set[np.dtype[Any]] = set()  # element types that were found to be ours


def as_array(value: Any, name: str = "the array") -> Array:
    """Turn anything that carries an array (NumPy, DLPack, buffer protocol) into one, uncopied.

    Raises unless global memory can be made of it; `name` is what the message calls it.
    """
    # Most arrays are whole, and asked about several times in a launch.
    if isinstance(value, Roomy) and value.slack:
        return value
    if value.__class__ in (np.ndarray, Argument) and value.dtype in _KNOWN:
        flags = value.flags
        if flags.c_contiguous and flags.aligned and value.ndim and min(value.strides) > 0:
            return value
    array = _carried(value, name)
    _check_elements(array, name)
    _KNOWN.add(array.dtype)
    return array


def _carried(value: Any, name: str) -> Array:
    """The array that a value carries, whatever its elements are."""
    why, found = "", None
    is_masked = "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray)
    if is_masked:
        why = ": this one has a mask beside its elements, which would be lost"
    else:
        try:
            found = as_numpy(value, name)
        except PtoError:
            raise
        except Exception as error:  # whatever another library's object answers with
            why = "" if isinstance(error, TypeError) else f": {error}"
    if found is not None:
        return found
    fix = "pass a NumPy array (or anything with DLPack or the buffer protocol), or ptr(array)"
    raise fail(
        "SA-0053",
        f"global memory is given as an array or a pointer{why}",
        got=[("type", type(value).__name__)],
        fix=f"{name}.filled(0), with the value that is to stand for what is masked"
        if is_masked
        else fix,
    )


def _check_elements(array: Array, name: str) -> None:
    """Refuse elements that do not lie as those of global memory do."""
    short = short_of(name)
    whole = f"np.ascontiguousarray({short})"
    if element_type(array, short).is_packed:  # ml_dtypes keeps them apart
        says = f"{name} has one 4-bit number in each byte, and the device has two"
        pack = f"codes = {short}.view(np.uint8) & 15; codes[..., ::2] | codes[..., 1::2] << 4"
        fix = f"{pack} are its pairs, of which a GlobalTensor says the format"
        raise _refused(says, (f"{short}.dtype", array.dtype), fix)
    if array.ndim == 0:
        got = f"{array.dtype} array of shape ()"
        fix = f"{short}.item() for a number, {short}.reshape(1) for one element of global memory"
        raise _refused(f"{name} is an array without dimensions", (name, got), fix)
    lies = (f"{short}.strides", array.strides)
    if any(step < 0 for step in array.strides):
        raise backwards(name, [lies])
    if any(step % array.itemsize for step in _steps(array)):
        says = f"the elements of {name} are no whole number of elements apart"
        fix = f"{whole} is a copy without what lies between them, as the other fields of records do"
        raise _refused(says, lies, f"{fix}; copy the result back afterwards")
    if not array.flags.aligned:
        says = f"{name} does not begin at a multiple of its element size"
        at = hex(array.__array_interface__["data"][0])
        raise _refused(says, ("address", at), f"{short}.copy(), and copy the result back")


def backwards(
    name: str, got: Iterable[tuple[str, object]], site: Location | None = None
) -> PtoError:
    """An array whose elements come in another order than those of global memory."""
    says = f"{name} goes backwards through memory, as x[::-1] does"
    short = short_of(name)
    fix = f"np.ascontiguousarray({short}) is a copy in its order"
    return fail("gm-array", says, got=got, fix=fix, site=site)


def _steps(array: Array) -> list[int]:
    """The strides that lead from one element to another."""
    return [s for n, s in zip(array.shape, array.strides, strict=True) if n > 1]


def _refused(says: str, got: tuple[str, object], fix: str) -> PtoError:
    return fail("gm-array", says, got=[got], fix=fix)


def element_type(array: Array, short: str = "array") -> DType:
    """The PTO element type of an array's elements; `short` is what a message calls the array."""
    try:
        return dtype(array.dtype)
    except ValueError as error:
        raise fail(
            "SA-0054",
            f"the array has a PTO element type: {error}",
            got=[(f"{short}.dtype", array.dtype)],
            fix=_conversion(array, short),
        ) from None


def _conversion(array: Array, short: str) -> str:
    """How to make an array of another element type one that a kernel takes."""
    kind = array.dtype
    if not kind.isnative:
        native = kind.newbyteorder("=")
        return f"the bytes are in the order of another machine: {short}.astype(np.{native})"
    if kind == np.bool_:
        return f"{short}.view(np.uint8) is the same memory as 0 and 1"
    return f"convert it first: {short}.astype(np.float32), or {short}.float() of torch"


class Argument(np.ndarray[Any, Any]):
    """An array as a kernel sees it that runs as it stands: a slice never is cut short.

    NumPy gives what there is of `x[100:200]`; views of global memory, and kernels that are lowered,
    refuse it.
    """

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) <= self.ndim and all(map(_is_plain, parts)):
            for axis, part in enumerate(parts):
                if isinstance(part, slice) and (part.stop or 0) > self.shape[axis]:
                    raise fail(
                        "slice-range",
                        "a slice of an array lies inside the array",
                        got=[("slice", part), ("size", self.shape[axis])],
                        fix=f"stop at {self.shape[axis]}: min(stop, {self.shape[axis]})",
                    )
        return super().__getitem__(index)


def _is_plain(part: Any) -> bool:
    return isinstance(part, int | np.integer | slice)


class Roomy(np.ndarray[Any, Any]):
    """An array behind which lie bytes that are nobody's: what a device has behind a buffer."""

    slack = 0  # so many

    @classmethod
    def copy_of(cls, array: Array, slack: int) -> Roomy:
        """A copy of an array with room behind it."""
        raw = np.zeros(array.nbytes + slack, np.uint8)
        found = raw[: array.nbytes].view(array.dtype).reshape(array.shape).view(cls)
        found[...] = array
        found.slack = slack
        return found


class GmBuffer(Storage):
    """The user's array as global memory: its bytes without a copy, at their real address.

    All arrays share one address space, so that those that overlap do overlap. Of an array that is
    part of a larger one, `data` goes from the first to the last element and includes what is not
    its own in between.
    """

    __slots__ = ("_own", "is_dense", "owner", "title")

    never_checked = 0  # all its bytes are defined, and stay so

    def __init__(self, array: Array, title: str = "") -> None:
        low, high = np.lib.array_utils.byte_bounds(array)
        self.name = "GM"
        self.title = title  # what the program calls the array
        self.owner = array  # keeps the memory alive
        self.base = low
        self.uid = -1
        self.epoch = 0
        self.writeable = bool(array.flags.writeable)
        self.is_dense = True  # whether all the bytes are the array's own
        self._own: Rows | Ranges | None = None
        if isinstance(array, Roomy) and array.slack:
            raw = (ctypes.c_uint8 * (high - low + array.slack)).from_address(low)
            self.data: Array = np.frombuffer(memoryview(raw), np.uint8)
        elif array.flags.c_contiguous:
            self.data = array.reshape(-1).view(np.uint8)
        else:
            self.is_dense = array.flags.f_contiguous
            raw = (ctypes.c_uint8 * (high - low)).from_address(low)
            self.data = np.frombuffer(memoryview(raw), np.uint8)

    def holds(self, place: Rows | Ranges, offset: int) -> bool:
        """Whether bytes so many behind the first one are all of the array's elements."""
        if self._own is None:
            array = self.owner
            # A dimension that stays in its place adds no element.
            shape = [1 if s == 0 else n for n, s in zip(array.shape, array.strides, strict=True)]
            steps = tuple(s // array.itemsize for s in array.strides)
            axes = AxisMap(tuple(shape), steps, (), tuple(range(array.ndim)))
            self._own = extents(axes, array.itemsize)
        return within(place, self._own, offset)


# ---- arguments that share memory -----------------------------------------------------------------


class Shared(NamedTuple):
    """Memory that two arguments share without being the same, as it was before the run."""

    names: tuple[str, str]
    part: Array  # the bytes themselves
    before: Array

    def told(self) -> Diagnostic | None:
        """What to say after the run: that one was written, and the other with it."""
        if np.array_equal(self.part, self.before):
            return None
        one, other = self.names
        return Diagnostic(
            "argument-overlap",
            f"the kernel has written bytes that {one} and {other} share",
            where(None),
            (("shared", f"up to {self.part.size} bytes"),),
            f"pass arrays that lie apart, {other}.copy() for one, or the same array twice",
            severity="warning",
        )


def shared_memory(arguments: Iterable[tuple[str, Any]]) -> list[Shared]:
    """The pairs of arrays that overlap; an array that is given twice is meant to be one."""
    arrays = [(name, as_array(each)) for name, each in arguments if getattr(each, "shape", ())]
    bounds = [np.lib.array_utils.byte_bounds(array) for _, array in arrays]
    found: list[Shared] = []
    for i, j in combinations(range(len(arrays)), 2):
        low, high = max(bounds[i][0], bounds[j][0]), min(bounds[i][1], bounds[j][1])
        (one, a), (other, b) = arrays[i], arrays[j]
        if low < high and not _are_one(a, b) and _meet(a, b):
            part = GmBuffer(a).data[low - bounds[i][0] : high - bounds[i][0]]
            found.append(Shared((one, other), part, part.copy()))
    return found


def _are_one(a: Array, b: Array) -> bool:
    starts = [each.__array_interface__["data"][0] for each in (a, b)]
    return (starts[0], a.shape, a.strides, a.dtype) == (starts[1], b.shape, b.strides, b.dtype)


def _meet(a: Array, b: Array) -> bool:
    try:
        return np.shares_memory(a, b, max_work=cast("Any", 10_000))
    except np.exceptions.TooHardError:
        return True
