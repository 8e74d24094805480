"""Arrays of other libraries: the same bytes, written in place, of every element type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptokit import (
    TADDS,
    TLOAD,
    TSTORE,
    GlobalTensor,
    ProgramError,
    PtoError,
    Tile,
    TileType,
    device,
    dtype,
    float32,
    kernel,
    loads,
)
from ptokit.base.dtypes import ALL

PATHS = ["eager", "lowered"]
SIZES = (16, 64)


@kernel(mode="auto")
def copied(x: Any, y: Any, *, Element: Any) -> None:
    t = Tile[TileType.Vec, Element, 16, 64]()
    TLOAD(t, GlobalTensor(x))
    TSTORE(GlobalTensor(y), t)


@kernel(mode="auto")
def raised(x: Any, y: Any, by: Any) -> None:
    t = Tile[TileType.Vec, float32, 16, 64]()
    TLOAD(t, GlobalTensor(x))
    TADDS(t, t, by)
    TSTORE(GlobalTensor(y), t)


def torch_or_skip() -> Any:
    return pytest.importorskip("torch")


# The element types of torch that PTO has, and those of its arrays.
TORCH = {
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32)},
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", TORCH)
def test_tensors_of_torch_are_used_in_place(name: str, path: str) -> None:
    torch = torch_or_skip()
    element = dtype(TORCH[name])
    bits = np.arange(1024 * element.itemsize, dtype=np.uint8) & 0x37  # no NaN in any type
    x = torch.from_numpy(bits.copy()).view(getattr(torch, name)).reshape(SIZES)
    y = torch.zeros(1024 * element.itemsize, dtype=torch.uint8).view(x.dtype).reshape(SIZES)
    place = y.data_ptr()
    copied[1](x, y, Element=element, path=path, target="a5")
    assert y.data_ptr() == place
    assert np.array_equal(y.view(torch.uint8).numpy().reshape(-1), bits)


def test_every_type_that_torch_has_is_in_the_table() -> None:
    torch = torch_or_skip()
    named = {str(t).removeprefix("torch.") for t in vars(torch).values() if _is_type(torch, t)}
    ours = {n for n in named if _is_ours(n)}
    assert ours <= {*TORCH, "uint64", "float8_e8m0fnu", "int4"}  # no vector tile holds the last


def _is_type(torch: Any, value: Any) -> bool:
    return isinstance(value, torch.dtype)


def _is_ours(name: str) -> bool:
    numpy = getattr(ml_dtypes, name, None) or getattr(np, name, None)
    try:
        return numpy is not None and dtype(np.dtype(numpy)) in ALL
    except (ValueError, TypeError):
        return False


def test_a_window_of_a_tensor_keeps_its_strides() -> None:
    torch = torch_or_skip()
    whole = torch.arange(16 * 256, dtype=torch.float32).reshape(16, 256)
    y = torch.zeros(SIZES, dtype=torch.bfloat16)
    copied[1](whole.bfloat16()[:, 64:128], y, Element=dtype("bf16"))
    assert torch.equal(y, whole.bfloat16()[:, 64:128])


@pytest.mark.parametrize("path", PATHS)
def test_pairs_of_4_bit_floats_are_their_bytes(path: str) -> None:
    torch = torch_or_skip()
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this torch has no 4-bit floats")
    bits = torch.arange(1024, dtype=torch.int32).to(torch.uint8).reshape(SIZES)
    y = torch.zeros(SIZES, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    copied[1](bits.view(torch.float4_e2m1fn_x2), y, Element=dtype("u8"), path=path)
    assert torch.equal(y.view(torch.uint8), bits)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("made", [bytearray, lambda size: memoryview(bytearray(size))])
def test_bytes_without_elements_are_no_array(made: Any, path: str) -> None:
    with pytest.raises(PtoError) as caught:
        copied[1](made(4096), np.zeros(SIZES, "f4"), Element=float32, path=path)
    assert caught.value.codes == ("argument-type",)
    assert "np.asarray" in caught.value.diagnostics[0].fix


REFUSED = {
    "wants gradients": (lambda torch: torch.ones(SIZES, requires_grad=True), "x.detach()"),
    "another device": (lambda torch: torch.ones(SIZES, device="meta"), "x.cpu()"),
    "do not all lie": (lambda torch: torch.ones(SIZES).to_sparse(), "x.to_dense()"),
    "float8_e4m3fnuz": (lambda torch: torch.ones(SIZES).to(torch.float8_e4m3fnuz), "astype"),
    "float64": (lambda torch: torch.ones(SIZES, dtype=torch.float64), "x.float() of torch"),
    "bool": (lambda torch: torch.ones(SIZES, dtype=torch.bool), "x.view(np.uint8)"),
    "torch computes": (lambda torch: torch._neg_view(torch.ones(SIZES)), "x.resolve_conj()"),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("why", REFUSED)
def test_tensors_that_cannot_be_global_memory(why: str, path: str) -> None:
    make, fix = REFUSED[why]
    with pytest.raises(ProgramError) as caught:
        copied[1](make(torch_or_skip()), np.zeros(SIZES, "f4"), Element=float32, path=path)
    (found,) = caught.value.diagnostics
    assert why in found.message
    assert fix in found.fix
    assert found.location is not None
    assert found.location.file == __file__


@pytest.mark.parametrize("path", PATHS)
def test_a_mapped_file_is_written_in_place(tmp_path: Path, path: str) -> None:
    file = tmp_path / "y.bin"
    y = np.memmap(file, np.float32, "w+", shape=SIZES)
    copied[1](np.full(SIZES, 3, np.float32), y, Element=float32, path=path)
    y.flush()
    assert np.all(np.fromfile(file, np.float32) == 3)


class Exporter:
    """An array of a library that speaks DLPack and nothing else."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **named: Any) -> Any:
        return self._array.__dlpack__(**named)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("path", PATHS)
def test_arrays_behind_dlpack(path: str) -> None:
    y = np.zeros(SIZES, np.float32)
    copied[1](Exporter(np.full(SIZES, 3, np.float32)), Exporter(y), Element=float32, path=path)
    assert np.all(y == 3)


class Elsewhere(Exporter):
    """An array in the memory of a GPU."""

    def __dlpack_device__(self) -> Any:
        return 2, 0


@pytest.mark.parametrize("path", PATHS)
def test_arrays_behind_dlpack_on_another_device(path: str) -> None:
    x = np.zeros(SIZES, np.float32)
    with pytest.raises(ProgramError) as caught:
        copied[1](Elsewhere(x), x, Element=float32, path=path)
    (found,) = caught.value.diagnostics
    assert found.message == "x lies in the memory of another device"
    assert ("x.__dlpack_device__()", "(2, 0)") in found.got


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("element", ["float4_e2m1fn", "int4"])
def test_numbers_of_4_bits_that_fill_a_byte_each_are_no_pairs(element: str, path: str) -> None:
    """ml_dtypes has one in each byte: half of the array would be taken for all of it."""
    x = np.ones(SIZES, getattr(ml_dtypes, element))
    with pytest.raises(ProgramError) as caught:
        copied[1](x, x.copy(), Element=dtype("u8"), path=path, target="a5")
    (found,) = caught.value.diagnostics
    assert found.message == "x has one 4-bit number in each byte, and the device has two"
    pack, _, _ = found.fix.partition(" are its pairs")
    first, _, then = pack.partition("; ")
    codes = eval(first.removeprefix("codes = "), {"np": np, "x": x})
    one = int(codes[0, 0])
    assert np.all(eval(then, {"codes": codes}) == one | one << 4)


# What holds one number: it is one, whatever path a kernel takes.
NUMBERS = {
    "an array": lambda: np.array(2.0, np.float32),
    "an array of whole numbers": lambda: np.array(2, np.int8),
    "a scalar": lambda: np.float64(2.0),
    "a scalar of another type": lambda: ml_dtypes.bfloat16(2.0),
    "an array of another type": lambda: np.array(2, ml_dtypes.float8_e4m3fn),
    "a tensor": lambda: torch_or_skip().tensor(2.0),
    "a tensor of another type": lambda: torch_or_skip().tensor(2).bfloat16(),
    "an element of a tensor": lambda: torch_or_skip().tensor([1.0, 2.0])[1],
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("case", NUMBERS)
def test_what_holds_one_number_is_a_number(case: str, path: str) -> None:
    y = np.zeros(SIZES, np.float32)
    raised[1](np.ones(SIZES, np.float32), y, NUMBERS[case](), path=path)
    assert np.all(y == 3)


@pytest.mark.parametrize("case", NUMBERS)
def test_so_is_it_in_an_instruction(case: str) -> None:
    with device("a2a3", mode="auto"):
        t = Tile[TileType.Vec, float32, 16, 64]()
        t.fill(1)
        TADDS(t, t, NUMBERS[case]())
        assert np.all(t.numpy() == 3)


TEXT = """
func.func @count(%x: !pto.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : index
  pto.store_scalar %n, %x[%c0] : !pto.ptr<i32>, i32
  return
}
"""


@pytest.mark.parametrize("make", [lambda: np.array(7, np.int8), lambda: np.int16(7)])
def test_so_is_it_for_a_text(make: Any) -> None:
    x = np.zeros(8, np.int32)
    loads(TEXT)["count"][1](x, make())
    assert x[0] == 7


def test_the_number_is_read_at_every_launch() -> None:
    y, by = np.zeros(SIZES, np.float32), np.array(1.0, np.float32)
    for expected in (2, 3):
        raised[1](np.ones(SIZES, np.float32), y, by, path="lowered")
        assert np.all(y == expected)
        by += 1


@kernel(mode="manual")
def beyond(x: Any) -> None:
    GlobalTensor(x[8:24, :])


@kernel(mode="manual")
def beyond_as_it_stands(x: Any) -> None:
    import math  # noqa: F401 - which no lowered kernel has: nobody else looks at the slice

    GlobalTensor(x[8:24, :])


@pytest.mark.parametrize(
    ("body", "path"), [(beyond, "eager"), (beyond, "lowered"), (beyond_as_it_stands, "eager")]
)
def test_a_slice_is_never_cut_short(body: Any, path: str) -> None:
    """As NumPy would: a kernel would move fewer rows than it says."""
    x = np.zeros(SIZES, np.float32)
    with pytest.raises(ProgramError) as caught:
        body[1](x, path=path)
    assert caught.value.codes == ("slice-range",)
    assert x[8:24].shape == (8, 64)  # outside of kernels NumPy is what it is
