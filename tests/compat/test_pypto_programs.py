"""Programs of PyPTO: orchestration on the host, blocks, workers, several devices."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import compat
from ptokit.base.diagnostics import NotSupported, PtoError
from ptokit.compat.pypto.annotations import returned_parameters


@pytest.fixture(autouse=True)
def stand_in() -> Iterator[None]:
    compat.install(replace=True)
    yield
    compat.install()


compat.install(replace=True)
pl: Any = importlib.import_module("pypto.language")
pld: Any = importlib.import_module("pypto.language.distributed")
ir: Any = importlib.import_module("pypto.ir")
runtime: Any = importlib.import_module("pypto.runtime")
devices: Any = importlib.import_module("pypto.ir.distributed_compiled_program")
compat.install()


@pl.function(type=pl.FunctionType.InCore)
def plus(x: pl.Tensor, y: pl.Out[pl.Tensor], by: pl.Scalar[pl.FP32]):
    start = pl.tile.get_block_idx()
    for i in pl.range(start, 4, pl.tile.get_block_num()):
        tile = pl.add(pl.load(x, [i * 16, 0], [16, 64]), by)
        y = pl.store(tile, [i * 16, 0], y)
    return y


@pl.program
class OnBlocks:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        between = pl.create_tensor([64, 64], dtype=pl.FP32)
        with pl.spmd(core_num=2):
            between = plus(x, between, 1.0)
        for _ in pl.range(3):
            between, _task = pl.submit(plus, between, between, 1.0)
        with pl.spmd(core_num=3):
            y = plus(between, y, 1.0)
        return y


def test_orchestration_launches_functions_on_blocks() -> None:
    x = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
    y = np.zeros_like(x)
    runtime.run(OnBlocks, x, y)
    np.testing.assert_allclose(y, x + 5, rtol=1e-5)
    made = ir.compile(OnBlocks)(x)  # what is not given is made as it is annotated
    np.testing.assert_array_equal(made, y)


def test_blocks_are_dispatched_from_outside() -> None:
    @pl.jit
    def inner(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.spmd(core_num=2):
            return plus(x, y, 1.0)

    x = np.zeros((64, 64), np.float32)
    with pytest.raises(PtoError, match=r"pypto\.dispatch"):
        inner.kernel[1](x, x.copy())


@pl.program
class TwoEntries:
    @pl.function
    def one(self, x: pl.Tensor):
        return x

    @pl.function
    def other(self, x: pl.Tensor):
        return x


def test_a_program_with_two_entries_is_told_at_its_line() -> None:
    with pytest.raises(PtoError, match=r"test_pypto_programs\.py:\d+.*pypto\.entry") as told:
        runtime.run(TwoEntries, np.zeros(4, np.float32))
    assert told.value.diagnostics[0].location.line == TwoEntries.functions["one"].place.line


@pl.jit
def unpacked(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    for i, (last,) in pl.range(3, init_values=(y,)):
        done = pl.store(pl.load(x, [0, 0], [16, 64]), [i * 16, 0], last)
        (carried,) = pl.yield_(done)
    return carried


def test_one_value_that_is_yielded_may_be_unpacked() -> None:
    x, y = np.ones((16, 64), np.float32), np.zeros((48, 64), np.float32)
    assert unpacked(x, y) is y
    assert (y == 1).all()


def either(a: Any, b: Any, t: Any):
    if t:
        out = pl.store(t, [0, 0], a)
    else:
        out = pl.store(t, [0, 0], b)
    return out


def same(a: Any, b: Any, t: Any):
    if t:
        out = pl.store(t, [0, 0], a)
    else:
        out = pl.assemble(a, t, [0, 0])
    b = pl.store(t, [0, 0], output_tensor=b)
    return b, out


def looped(a: Any, t: Any):
    for a in t:
        print(a)
    return a


def test_what_is_returned_is_known_where_every_way_agrees() -> None:
    assert returned_parameters(same) == ("b", "a")
    assert returned_parameters(either) is None
    assert returned_parameters(looped) is None


@pl.jit.incore
def passed_on(
    x: pl.Tensor, y: pl.Out[pl.Tensor], data: pld.DistributedTensor, signal: pld.DistributedTensor
):
    context = pld.get_comm_ctx(data)
    me, ranks = pld.rank(context), pld.nranks(context)
    data = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], data)
    pld.tensor.barrier(signal)
    there = pld.tile.remote_load(data, peer=(me + 1) % ranks, offsets=[0, 0], shape=[1, 64])
    pl.write(y, [0, 0], pl.read(signal, [0, 0]))
    return pl.store(there, [0, 64], y)


@pl.jit.host
def ring(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    data = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
    signal = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        own = pld.window(data, [1, 64]), pld.window(signal, [pld.world_size(), 1])
        passed_on(x[r], y[r], *own, device=r)


def test_devices_reach_each_other() -> None:
    x = np.random.default_rng(1).standard_normal((3, 1, 64)).astype(np.float32)
    y = np.zeros((3, 1, 128), np.float32)
    several = devices.DistributedConfig(device_ids=[0, 1, 2])
    compiled = ring.compile(x, y, config=runtime.RunConfig(distributed_config=several))
    compiled(x, y, config=runtime.RunConfig(platform="a2a3sim"))
    np.testing.assert_array_equal(y[:, 0, 64:], np.roll(x[:, 0], -1, axis=0))
    with pytest.raises(PtoError, match=r"pypto\.dispatch"):
        pld.world_size()
    with pytest.raises(AttributeError, match=r"distributed\.tensor has no all_reduce here"):
        _ = pld.tensor.all_reduce


@pl.program
class Watched:
    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def seen(y: pl.Tensor):  # noqa: N805
        ...

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, x: pl.Tensor, y: pl.Out[pl.Tensor]):
        y = plus(x, y, 2.0)
        self.seen(y)
        return y


def test_callbacks_are_bound_before_a_program_runs() -> None:
    compiled = ir.compile(Watched)
    with pytest.raises(ValueError, match="seen"):
        compiled.prepare()
    told: list[Any] = []
    x, y = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    with compiled.prepare(callbacks={"seen": lambda args: told.append(args[0])}) as worker:
        worker(x, y)
    assert told[0] is y
    assert (y == 2).all()


FUNCTION = """
@pl.function
def plus(
    x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
) -> pl.Tensor[[16, 64], pl.FP32]:
    return pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), {by}), [0, 0], y)
"""


def test_functions_are_read_from_text_and_made_text(tmp_path: Path) -> None:
    file = tmp_path / "plus.py"
    file.write_text("import pypto.language as pl\n" + FUNCTION.format(by=3.0), "utf-8")
    first = pl.parse(FUNCTION.format(by=2.0))
    again = ir.deserialize(ir.serialize(first))
    assert isinstance(first, ir.Function)
    assert [each.name for each in first.params] == ["x", "y"]
    assert len(first.return_types) == 1
    assert first.as_python() == FUNCTION.format(by=2.0).lstrip("\n")
    for function, by in ((first, 2), (again, 2), (pl.loads(str(file)), 3)):
        x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
        assert function(x, y) is y
        assert (y == 1 + by).all()


def test_a_text_holds_one_function_or_program() -> None:
    with pytest.raises(ValueError, match=r"has no @pl\.function"):
        pl.parse("x = 42")
    two = FUNCTION.format(by=1.0) + FUNCTION.format(by=1.0).replace("def plus", "def other")
    with pytest.raises(ValueError, match="has several: plus, other"):
        pl.parse(two)
    with pytest.raises(SyntaxError):
        pl.parse("@pl.function\ndef f(x): return x +")
    with pytest.raises(ValueError, match="no bytes of"):
        ir.deserialize(b"something else")


BY = 4.0


@pl.function
def by_a_global(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    return pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), BY), [0, 0], y)


def test_what_a_text_does_not_hold_is_told() -> None:
    with pytest.raises(PtoError, match=r"pypto\.serialize.*by_a_global.*: BY"):
        ir.serialize(by_a_global)


@pl.jit
def of_an_accumulator(a: pl.Tensor, b: pl.Tensor, y: pl.Out[pl.Tensor]):
    spaces = pl.MemorySpace
    left = pl.move(
        pl.load(a, [0, 0], [16, 16], target_memory=spaces.Mat), target_memory=spaces.Left
    )
    in_l1 = pl.load(b, [0, 0], [16, 16], target_memory=spaces.Mat)
    product = pl.matmul(left, pl.move(in_l1, target_memory=spaces.Right))
    target = pl.load(b, [0, 0], [16, 16], target_memory=spaces.Mat)
    back = pl.move(pl.tile.assemble(target, product, [0, 0]), target_memory=spaces.Vec)
    return pl.store(back, [0, 0], y)


def test_lowering_generates_nothing_and_a_launch_is_for_a_device() -> None:
    """No device moves a tile from L1 to UB; what is only lowered is told nothing of that."""
    tensors = [np.ones((16, 16), np.float32) for _ in range(3)]
    assert list(of_an_accumulator.lower(*tensors).functions) == ["of_an_accumulator"]
    backend: Any = importlib.import_module("pypto.backend.pto_backend")
    with pytest.raises(backend.PartialCodegenError, match="Mat>Left"):
        of_an_accumulator(*tensors)
    with pytest.raises(PtoError, match="Mat>Left"):
        of_an_accumulator.lower(*tensors, config=runtime.RunConfig(platform="a2a3"))


@pl.jit
def of_tensors(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    return pl.store(pl.add(x, x), [0, 0], y)


def test_what_is_not_here_is_no_mistake_of_the_program() -> None:
    backend: Any = importlib.import_module("pypto.backend.pto_backend")
    x = np.ones((16, 64), np.float32)
    with pytest.raises(NotSupported, match=r"pypto\.tensor"):
        of_tensors(x, x.copy())
    assert not issubclass(NotSupported, backend.PartialCodegenError)
