"""Programs for the tile level of PyPTO: they run as they are called, and are kernels of ours."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import compat
from ptokit.base.diagnostics import PtoError
from ptokit.base.layout import Array
from tests.command import command


@pytest.fixture(autouse=True)
def stand_in() -> Iterator[None]:
    compat.install(replace=True)
    yield
    compat.install()


# Kernels are read again when they are lowered, so they stand at the top of the file.
compat.install(replace=True)
pl: Any = importlib.import_module("pypto.language")
runtime: Any = importlib.import_module("pypto.runtime")
compat.install()


def drawn(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pl.jit
def gated(x: pl.Tensor, gate: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(4):
            t = pl.load(x, [i * 16, 0], [16, 64])
            g = pl.load(gate, [i * 16, 0], [16, 64])
            sigmoid = pl.recip(pl.add(pl.exp(pl.mul(g, -1.0)), 1.0))
            pl.store(pl.mul(t, sigmoid), [i * 16, 0], y)
    return y


def test_a_function_runs_and_returns_its_tensor() -> None:
    x, gate, y = drawn(64, 64), drawn(64, 64, seed=2), np.zeros((64, 64), np.float32)
    assert gated(x, gate, y, config=runtime.RunConfig(platform="a5sim")) is y
    np.testing.assert_allclose(y, x / (1 + np.exp(-gate)), rtol=1e-5)


def test_a_function_is_a_kernel() -> None:
    x = drawn(64, 64)
    assert list(gated.lower(x, x, x).functions) == ["gated"]
    assert "scf.for" in gated.kernel.text(x, x, x)
    assert gated.kernel.check("all", x, x, x)
    y = np.zeros_like(x)
    gated.kernel[1](x, x, y, path="lowered")
    np.testing.assert_allclose(y, x / (1 + np.exp(-x)), rtol=1e-5)


@pl.jit
def softmax(a: pl.Tensor, output: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(a, [0, 0], [32, 64])
        scratch = pl.create_tile([32, 64], dtype=pl.FP32, target_memory=pl.MemorySpace.Vec)
        top: pl.Tile[[32, 1], pl.FP32] = pl.row_max(t, scratch)
        e = pl.exp(pl.row_expand_sub(t, top))
        whole = pl.reshape(pl.recip(pl.reshape(pl.row_sum(e, scratch), [1, 32])), [32, 1])
        pl.store(pl.row_expand_mul(e, whole), [0, 0], output)
    return output


def test_reductions_and_broadcasts() -> None:
    a, y = drawn(32, 64), np.zeros((32, 64), np.float32)
    softmax(a, y)
    e = np.exp(a - a.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)


@pl.jit.incore
def product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    first = pl.load(a, [0, 0], [32, 32], target_memory=pl.MemorySpace.Mat)
    second = pl.load(b, [0, 0], [32, 32], target_memory=pl.MemorySpace.Mat)
    left = pl.move(first, target_memory=pl.MemorySpace.Left)
    right = pl.move(second, target_memory=pl.MemorySpace.Right)
    acc = pl.matmul(left, right)
    more = pl.load(a, [0, 32], [32, 32], target_memory=pl.MemorySpace.Mat)
    rest = pl.load(b, [32, 0], [32, 32], target_memory=pl.MemorySpace.Mat)
    acc = pl.matmul_acc(acc, pl.move(more, pl.MemorySpace.Left), pl.move(rest, pl.Mem.Right))
    return pl.store(acc, [0, 0], out)


@pl.jit
def layer(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    between = pl.create_tensor([32, 32], dtype=pl.FP32)
    between = product(a, b, between)
    with pl.at(level=pl.Level.CORE_GROUP):
        return pl.store(pl.relu(pl.load(between, [0, 0], [32, 32])), [0, 0], out)


def test_functions_call_each_other_through_tensors_of_their_own() -> None:
    a, b, out = drawn(32, 64), drawn(64, 32, seed=2), np.zeros((32, 32), np.float32)
    layer(a, b, out)
    np.testing.assert_allclose(out, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)


@pl.jit
def transposed_product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    first = pl.load(a, [0, 0], [16, 64], target_memory=pl.MemorySpace.Mat)
    second = pl.tile.transpose_view(pl.load(b, [0, 0], [32, 64], target_memory=pl.Mem.Mat))
    return pl.store(pl.matmul(first, second), [0, 0], out)


def test_a_matrix_in_l1_is_seen_transposed() -> None:
    a, b, out = drawn(16, 64), drawn(32, 64, seed=2), np.zeros((16, 32), np.float32)
    transposed_product(a, b, out)
    np.testing.assert_allclose(out, a @ b.T, rtol=1e-4, atol=1e-4)


@pl.jit
def ragged(x: pl.Tensor, sizes: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        count = pl.cast(pl.read(sizes, [0]), pl.INDEX)
        last = pl.cast(pl.read(sizes, [1]), pl.INDEX)
        for i in pl.range(count):
            if i == count - 1:
                valid = last
            else:
                valid = 64
            t = pl.load(x, [i * 16, 0], [16, 64], valid_shape=[16, valid])
            pl.store(pl.tile.fillpad(t, pad_value=pl.PadValue.zero), [i * 16, 0], y)
    return y


@pytest.mark.parametrize("path", ["called", "lowered"])
def test_what_is_read_from_a_tensor_decides_sizes_and_loops(path: str) -> None:
    x, y = drawn(48, 64), np.full((48, 64), 7, np.float32)
    sizes = np.array([2, 40], np.int32)
    if path == "called":
        ragged(x, sizes, y)
    else:
        ragged.kernel[1](x, sizes, y, path="lowered")
    expected = np.full_like(y, 7)
    expected[:32] = x[:32]
    expected[16:32, 40:] = 0
    np.testing.assert_array_equal(y, expected)


@pl.jit
def shuffled(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    left, right = pl.load(x, [0, 0], [32, 16]), pl.load(x, [0, 16], [32, 16])
    whole = pl.concat(right, left)
    whole = pl.tile.assemble(whole, pl.slice(left, [8, 16], [24, 0]), [0, 0])
    return pl.store(whole, [0, 0], y)


def test_tiles_are_put_together_and_taken_apart() -> None:
    x, y = drawn(32, 32), np.zeros((32, 32), np.float32)
    shuffled(x, y)
    expected = np.concatenate([x[:, 16:], x[:, :16]], axis=1)
    expected[:8, :16] = x[24:, :16]
    np.testing.assert_array_equal(y, expected)


@pl.jit
def running(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    start = pl.full([16, 64], dtype=pl.FP32, value=0.0)
    for i, (total,) in pl.range(4, init_values=(start,)):
        more = pl.load(x, [i * 16, 0], [16, 64])
        if i == 0:
            part = pl.yield_(more)
        else:
            part = pl.yield_(pl.add(total, more))
        total = pl.yield_(part)
    return pl.store(total, [0, 0], y)


def test_rounds_hand_on_what_they_yield() -> None:
    x, y = drawn(64, 64), np.zeros((16, 64), np.float32)
    running(x, y)
    np.testing.assert_allclose(y, x.reshape(4, 16, 64).sum(axis=0), rtol=1e-5, atol=1e-6)


@pl.jit
def named_as_the_instruction(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    return pl.store(pl.lrelu(pl.load(x, [0, 0], [16, 64]), 0.5), [0, 0], y)


def test_instructions_are_operations_under_their_names() -> None:
    x, y = drawn(16, 64), np.zeros((16, 64), np.float32)
    named_as_the_instruction(x, y)
    np.testing.assert_allclose(y, np.where(x > 0, x, x * 0.5), rtol=1e-6)


@pl.function(type=pl.FunctionType.InCore)
def scaled(x: pl.Tensor[[16, 64], pl.FP32], by: pl.Scalar[pl.FP32], y: pl.Out[pl.Tensor]):
    return pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), by), [0, 0], y)


@pl.program
class Scaling:
    @pl.function(type=pl.FunctionType.InCore)
    def one(self, x: pl.Tensor, y: pl.Tensor):
        return scaled(x, 3.0, y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def all_of_them(self, x: pl.Tensor, y: pl.Tensor):
        for i in pl.range(pl.tensor.dim(x, 0) // 16):
            part = pl.slice(x, [16, 64], [i * 16, 0])
            self.one(part, pl.slice(y, [16, 64], [i * 16, 0]))


def test_a_program_is_run_from_the_function_that_nobody_calls() -> None:
    x, y = drawn(48, 64), np.zeros((48, 64), np.float32)
    runtime.run(Scaling, x, y, config=runtime.RunConfig(platform="a2a3", device_id=3))
    np.testing.assert_array_equal(y, x * np.float32(3))


@pl.jit
def too_large(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    return pl.store(pl.exp(pl.load(x, [0, 0], [512, 128])), [0, 0], y)


def test_what_does_not_fit_a_device_is_told() -> None:
    x = drawn(512, 128)
    with pytest.raises(PtoError, match="UB"):
        too_large(x, x.copy())


@pl.jit
def of_tensors(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    return pl.store(pl.add(x, x), [0, 0], y)


def test_what_works_on_whole_tensors_is_refused_by_name() -> None:
    with pytest.raises(PtoError, match=r"pypto\.tensor.*pl\.add of tensors"):
        of_tensors(drawn(16, 64), drawn(16, 64))
    with pytest.raises(AttributeError, match="has no frobnicate"):
        _ = pl.frobnicate


SCRIPT = """
import numpy as np
import pypto.language as pl

@pl.jit
def twice(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    return pl.store(pl.add(t := pl.load(x, [0, 0], [16, 64]), t), [0, 0], y)

x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
twice(x, y)
assert (y == {expected}).all()
"""


def test_a_script_is_run_from_the_shell(tmp_path: Path) -> None:
    file = tmp_path / "twice.py"
    file.write_text(SCRIPT.format(expected=2), "utf-8")
    done = command("run", "--compat", str(file))
    assert done.returncode == 0
    assert "twice.py has run its functions itself" in done.stdout
    file.write_text(SCRIPT.format(expected=3), "utf-8")
    done = command("run", "--compat", str(file))
    assert done.returncode != 0
    assert "AssertionError" in done.stderr
