"""Arrays of other libraries, as NumPy arrays over the same bytes.

Tensors of torch are seen in place whatever their element type: those that NumPy lacks (bfloat16,
8-bit floats) become the types of ml_dtypes, pairs of 4-bit floats the bytes that hold them. Any
other library is asked through DLPack or the buffer protocol.
"""

from __future__ import annotations

import sys
from typing import Any, cast

import ml_dtypes
import numpy as np

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.layout import Array

_HERE = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost: memory of this computer, pinned or not


def short_of(name: str) -> str:
    """What stands for an array in a line of Python: its name, where it has one."""
    return "x" if " " in name else name


def carries_array(value: Any) -> bool:
    """Whether a value carries an array: NumPy's, or one of another library."""
    return hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")


def as_numpy(value: Any, name: str) -> Array:
    """The array that a value carries, uncopied; `name` is what a message calls it.

    Raises whatever another library's object answers with where it carries none.
    """
    if _is_tensor(value):
        return _of_tensor(value, name)
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        where = getattr(value, "__dlpack_device__", None)
        kind, number = where() if where is not None else (_HERE[0], 0)
        if kind not in _HERE:
            says = f"{name} lies in the memory of another device"
            got = f"{short_of(name)}.__dlpack_device__()", (int(kind), int(number))
            raise _refused(says, got, "copy it to the host first, and the result back")
        return np.from_dlpack(value)
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    return np.asarray(memoryview(cast("Any", value)))


def as_number(value: Any, name: str) -> Any:
    """The number in an array without dimensions, or in a scalar of NumPy's that is no number of
    its own (a bfloat16, a truth value); any other value as it is."""
    if isinstance(value, np.generic):
        is_own = isinstance(value, np.number) or value.dtype.kind in "mMSU"
        return value if is_own else value.item()
    if carries_array(value) and getattr(value, "shape", None) == ():
        inside = as_numpy(value, name)[()]
        return inside if inside.dtype.kind in "cmMSUO" else inside.item()
    return value


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")  # who has not imported it has no tensor
    return torch is not None and isinstance(value, torch.Tensor)


def _of_tensor(tensor: Any, name: str) -> Array:
    short = short_of(name)
    if tensor.device.type != "cpu":
        says = f"{name} lies in the memory of another device"
        fix = f"{short}.cpu() is a copy; {short}.copy_(...) brings the result back"
        raise _refused(says, (f"{short}.device", tensor.device), fix)
    if str(tensor.layout) != "torch.strided":
        says = f"the elements of {name} do not all lie in memory"
        raise _refused(says, (f"{short}.layout", tensor.layout), f"{short}.to_dense() is a copy")
    if tensor.requires_grad:
        says = f"{name} wants gradients, and none flow through a kernel"
        fix = f"{short}.detach() has the same memory without them"
        raise _refused(says, (f"{short}.requires_grad", True), fix)
    if tensor.is_conj() or tensor.is_neg():
        says = f"{name} is a view whose elements torch computes when it reads them"
        fix = f"{short}.resolve_conj().resolve_neg() is a copy"
        raise _refused(says, (f"{short}.is_conj(), {short}.is_neg()",
                              (tensor.is_conj(), tensor.is_neg())), fix)  # fmt: skip
    torch = sys.modules["torch"]
    name_of_type = str(tensor.dtype).removeprefix("torch.")
    beyond_numpy = getattr(ml_dtypes, name_of_type, None)
    if beyond_numpy is not None:
        bits = torch.uint8 if tensor.element_size() == 1 else torch.int16
        return tensor.view(bits).numpy().view(beyond_numpy)
    if name_of_type.endswith("_x2"):  # two numbers in a byte
        return tensor.view(torch.uint8).numpy()
    return tensor.numpy()


def _refused(says: str, got: tuple[str, object], fix: str) -> PtoError:
    return fail("gm-array", says, got=[got], fix=fix)
