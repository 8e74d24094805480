"""Convolution tiles in kernels: every path and every text form gives the same bytes."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import Kernel, PtoError, SetFmatrixMode
from ptokit.base.convs import CONV_PARAMETERS
from ptokit.base.layout import Array
from ptokit.from_text import loads
from tests.frontend import conv_kernels as k

TARGETS = ("a2a3", "a5")
_rng = np.random.default_rng(11)
X = _rng.integers(-3, 4, (1, 2, 4, 8, 16)).astype(np.float16)
W = _rng.integers(-3, 4, (128, 16)).astype(np.float16)


def unrolled(
    filters: tuple[int, int], stride: int, dilation: int, pads: tuple[int, ...], pad_value: float
) -> Array:
    """The whole unrolled matrix of X, by the definition."""
    left, right, top, bottom = pads
    around = ((0, 0), (top, bottom), (left, right), (0, 0))
    padded = np.pad(X[0].astype(np.float32), around, constant_values=np.float16(pad_value))
    down = (padded.shape[1] - dilation * (filters[0] - 1) - 1) // stride + 1
    along = (padded.shape[2] - dilation * (filters[1] - 1) - 1) // stride + 1
    rows = [
        padded[:, i * stride :, j * stride :][
            :, : dilation * (filters[0] - 1) + 1 : dilation, : dilation * (filters[1] - 1) + 1
        ][:, :, ::dilation].reshape(-1)
        for i in range(down)
        for j in range(along)
    ]
    return np.array(rows)


def everywhere(
    kernel: Kernel, target: str, shape: tuple[int, ...], *numbers: Any, x: Array = X, **consts: Any
) -> Array:
    """Run on both paths and from every text form the kernel has; returns the one result."""
    is_pair = kernel in (k.channels_split, k.reshaped)
    inputs = (x,) if is_pair else (x, W)
    kind = x.dtype if is_pair else np.float32

    def run(launch: Any, **options: Any) -> Array:
        y = np.full(shape, -1, kind)
        launch(*inputs, y, *numbers, target=target, **options)
        return y

    eager = run(kernel[1], path="eager", **consts)
    blank = np.zeros(shape, kind)
    results = [run(kernel[1], path="lowered", **consts)]
    results.append(run(kernel[1], path="lowered", check="explore", **consts))
    refused: list[tuple[str, tuple[str, ...]]] = []
    for form in ("l3", "l2", "l1", "sync"):
        try:
            text = kernel.text(*inputs, blank, *numbers, form=form, target=target, **consts)
        except PtoError as error:
            refused.append((form, error.codes))
            continue
        program = loads(text)
        assert str(loads(str(program))) == str(program)
        results.append(run(program[kernel.name][1]))
    assert all(np.array_equal(result, eager) for result in results)
    assert all(form != "l3" and codes == ("convert-level",) for form, codes in refused)
    return eager


# ---- what the parameters do ----------------------------------------------------------------------


@st.composite
def set_ups(draw: st.DrawFn) -> dict[str, Any]:
    """Parameters whose unrolled matrix has at least 16 rows and 128 columns."""
    filters = draw(st.sampled_from([(2, 2), (1, 4), (4, 1), (3, 3), (2, 3)]))
    stride, dilation = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    pads = tuple(draw(st.integers(0, 3)) for _ in range(4))
    down = (4 + pads[2] + pads[3] - dilation * (filters[0] - 1) - 1) // stride + 1
    along = (8 + pads[0] + pads[1] - dilation * (filters[1] - 1) - 1) // stride + 1
    if min(down, along) < 1 or down * along < 16:
        pads = (3, 3, 6, 6)
    pad_value = draw(st.sampled_from([0.0, -1.5, 3.0, 0.1]))
    return {"filters": filters, "stride": stride, "dilation": dilation, "pads": pads} | {
        "pad_value": pad_value
    }


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=8, deadline=None)
@given(chosen=set_ups())
def test_parameters_known_and_late(target: str, chosen: dict[str, Any]) -> None:
    got = everywhere(k.known_parameters, target, (16, 16), **chosen)
    rows = unrolled(**chosen)[:16, :128]
    assert np.array_equal(got, (rows.astype(np.float64) @ W).astype(np.float32))
    numbers = (*chosen["filters"], chosen["stride"], chosen["dilation"], *chosen["pads"])
    late = everywhere(k.late_parameters, target, (16, 16), *numbers, chosen["pad_value"])
    assert np.array_equal(late, got)


def test_a_kernel_without_loops_has_a_level_1_form() -> None:
    """Parameters set before the first write are said of the value it makes."""
    consts = {"filters": (2, 2), "stride": 1, "dilation": 1, "pads": (1, 1, 1, 1), "pad_value": 2.0}
    y = np.zeros((16, 16), np.float32)
    text = k.known_parameters.text(X, W, y, form="l1", **consts)
    made = [line for line in text.splitlines() if "pto.set_conv_param" in line]
    assert any('["repeat_mode"]' in line for line in made)
    loads(text).convert("l3")["known_parameters"][1](X, W, y)
    rows = unrolled((2, 2), 1, 1, (1, 1, 1, 1), 2.0)[:16]
    assert np.array_equal(y, rows @ W.astype(np.float32))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mode", ["FMATRIX_A_AUTO", "FMATRIX_B_AUTO"])
def test_registers_loaded_by_the_instruction(target: str, mode: str) -> None:
    got = everywhere(k.automatic_registers, target, (16, 16), mode=SetFmatrixMode[mode])
    rows = unrolled((2, 2), 1, 1, (0, 0, 0, 0), 0)[:16]
    assert np.array_equal(got, rows @ W.astype(np.float32))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sizes", [(4, 8), (4, 6), (3, 8)])
def test_sizes_at_run_time(target: str, sizes: tuple[int, int]) -> None:
    got = everywhere(k.sizes_at_run_time, target, (16, 16), *sizes)
    whole = k.sizes_at_run_time.lower(X, W, got, 4, 8, target=target)
    assert k.sizes_at_run_time.lower(X, W, got, *sizes, target=target) is whole


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_parameters_change_while_the_kernel_runs(target: str, n: int) -> None:
    y = everywhere(k.changed_in_a_loop, target, (16 * (n + 1), 16), n)
    if n:
        rows = unrolled((2, 2), 1, 1, (1, 1, 1, 1), 1.5)[:16]
        assert np.array_equal(y[:16], rows @ W.astype(np.float32))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_handles_change_places(target: str, n: int) -> None:
    everywhere(k.swapped_maps, target, (16 * (n + 1), 16), n)


@pytest.mark.parametrize("target", TARGETS)
def test_bound_by_hand(target: str) -> None:
    everywhere(k.bound_by_hand, target, (16, 16), address=0x8000)
    rows = unrolled((2, 2), 1, 1, (1, 0, 1, 0), 0.25)[8:24]
    for seed in (None, 1, 2, 3):
        y = np.zeros((16, 16), np.float32)
        k.bound_by_hand[1](X, W, y, target=target, seed=seed, address=0x8000)
        assert np.array_equal(y, rows @ W.astype(np.float32))


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "kirinx90"])
@pytest.mark.parametrize("kernel", [k.channels_split, k.reshaped], ids=lambda each: each.name)
def test_tiles_and_convolution_tiles_over_the_same_bytes(kernel: Kernel, target: str) -> None:
    x = np.arange(512, dtype=np.float16).reshape(8, 64)
    got = everywhere(kernel, target, (8, 64), x=x)
    assert np.array_equal(got.reshape(32, 16), x.reshape(16, 32).T)


@pytest.mark.parametrize("target", TARGETS)
def test_weights_in_blocks(target: str) -> None:
    assert everywhere(k.weights_in_blocks, target, (16, 16)).any()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("first", [2, 5])
def test_every_accessor(target: str, first: int) -> None:
    y = everywhere(k.all_accessors, target, (21, 8), first)
    assert y[:15, 0].tolist() == [first + n for n in range(15)]
    assert y[16:, 0].tolist() == [first, first + 1, first + 2, first + 3, 1 if first > 3 else -1]
    assert len(CONV_PARAMETERS) == 15 + len(("transpose", "padList"))


# ---- what is said about them ---------------------------------------------------------------------


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize(("kernel", "code"), k.MISTAKES, ids=lambda v: getattr(v, "name", v))
def test_mistakes_are_named_at_their_line(kernel: Kernel, code: str, path: str) -> None:
    with pytest.raises(PtoError) as caught:
        kernel[1](X, W, np.zeros((16, 16), np.float32), path=path)
    found = caught.value.diagnostics[0]
    assert found.code == code
    assert found.location is not None
    line = linecache.getline(found.location.file, found.location.line)
    assert line.rstrip().endswith("# wrong"), line


def test_an_unknown_parameter_is_named_at_its_line() -> None:
    with pytest.raises(PtoError, match="no attribute 'SetFmapX'") as caught:
        k.no_such_parameter.lower(X, W, np.zeros((16, 16), np.float32))
    found = caught.value.diagnostics[0].location
    assert found is not None
    assert "# wrong" in linecache.getline(found.file, found.line)


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize(
    ("kernel", "numbers", "code", "word"),
    [
        (k.late_parameters, (2, 2, 256, 1, 0, 0, 0, 0, 0.0), "conv-parameter", "SetStrideH"),
        (k.sizes_at_run_time, (5, 8), "conv-size", "Sized("),
        (k.sizes_at_run_time, (0, 8), "conv-size", "Sized("),
    ],
)
def test_late_mistakes_are_found_when_they_happen(
    kernel: Kernel, numbers: tuple[float, ...], code: str, word: str, path: str
) -> None:
    with pytest.raises(PtoError) as caught:
        kernel[1](X, W, np.zeros((16, 16), np.float32), *numbers, path=path)
    found = caught.value.diagnostics[0]
    assert found.code == code
    assert found.location is not None
    assert word in linecache.getline(found.location.file, found.location.line)


def test_check_looks_at_every_target() -> None:
    y = np.zeros((16, 16), np.float32)
    report = k.automatic_registers.check("all", X, W, y, mode=SetFmatrixMode.FMATRIX_A_AUTO)
    assert not report.found["a2a3"]
    assert not report.found["a5"]
    assert "TIMG2COL.unavailable" in {d.code for d in report.found["kirin9030"]}


def test_a_map_that_does_not_fit_is_named() -> None:
    with pytest.raises(PtoError, match="do not fit into L1"):
        k.two_large_maps.lower(X, W, X, target="a2a3")


def test_the_memory_map_shows_convolution_tiles() -> None:
    y = np.zeros((16, 16), np.float32)
    shown = k.automatic_registers.memory_map(X, W, y, mode=SetFmatrixMode.FMATRIX_A_AUTO)
    (mine,) = [tile for tile in shown.tiles if tile.name == "fmap"]
    assert (mine.memory, mine.nbytes) == ("L1", 2048)
    assert "NC1HWC0" in str(shown)


def test_registers_are_set_only_when_their_readers_are_through() -> None:
    """In a loop, SETFMATRIX of the next round waits for the TIMG2COL of this one."""
    text = k.changed_in_a_loop.text(X, W, np.zeros((64, 16), np.float32), 3)
    body = text[text.index("scf.for") :]
    before, _, behind = body.partition("pto.SETFMATRIX")
    orders = ("pto.wait_flag[<PIPE_MTE1>, <PIPE_S>", "pto.barrier <PIPE_ALL>")
    assert any(order in before for order in orders)
    assert "pto.wait_flag[<PIPE_S>, <PIPE_MTE1>" in behind[: behind.index("timg2col")]
