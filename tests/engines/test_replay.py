"""Repeating a run leaves the bytes of the run: every instruction, with plain and with odd values.

What runs as a body is trivially right here; `test_the_library_has_most_instructions` counts what
the library of compiled functions has.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

from ptokit import (
    TADDS,
    TLOAD,
    TROWSUM,
    TSHL,
    TSTORE,
    BLayout,
    GlobalTensor,
    Tile,
    TileType,
    float32,
    int32,
    kernel,
)
from ptokit.base.diagnostics import ProgramError, PtoError
from ptokit.base.dtypes import f32
from ptokit.base.enums import AtomicType
from ptokit.base.location import Location
from ptokit.engines.compiled import fusion
from ptokit.engines.compiled.library import library
from ptokit.engines.compiled.replay import Replay, Tape
from ptokit.frontend.session import running
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.samples import Sample, Spec, parse
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS
from ptokit.kernels import Kernel
from ptokit.machine.machine import Machine
from ptokit.machine.objects import GlobalObject
from ptokit.machine.scheduler import Outcome
from tests.engines.test_instructions import of
from tests.support import contents, sample_operands
from tests.test_examples import one_target_each
from tools.compiled import WITHOUT, covered, in_examples, often

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

HERE = Location("sample", 1)
ODD_F32 = np.array(
    [0.0, -0.0, 1e-45, -1e-40, 1.5, -2.5, 3e38, np.inf, -np.inf, np.nan, 65504, 65520, 0.5, 127.5],
    np.float32,
)


def scramble(operands: dict[str, Any], seed: int) -> None:
    """Overwrite some elements of every float operand with zeros, subnormals, infinities, NaN."""
    rng = np.random.default_rng(seed)
    for operand in operands.values():
        kind = getattr(getattr(operand, "spec", None), "dtype", None)
        if kind is None or not kind.is_float or kind.itemsize < 2:
            continue
        storage = getattr(operand, "storage", None)
        if isinstance(operand, GlobalObject):
            storage = None if operand.pointer is None else operand.pointer.buffer
        if storage is not None and storage.nbytes % kind.itemsize == 0:
            elements = storage.data.view(kind.np)
            where = rng.random(elements.shape) < 0.3
            with np.errstate(all="ignore"):
                elements[where] = rng.choice(ODD_F32, where.sum()).astype(kind.np)


def storages(machine: Machine, operands: dict[str, Any]) -> list[Any]:
    """Every memory the operands lie in."""
    found = [*machine.core.memories.values()]
    for operand in operands.values():
        storage = getattr(operand, "storage", None)
        if storage is not None:
            found.append(storage)
        if isinstance(operand, GlobalObject) and operand.pointer is not None:
            found.append(operand.pointer.buffer)
    return list({id(each): each for each in found}.values())


class Repeated(NamedTuple):
    """What a call leaves, what its repetition leaves, and what ran as a body there."""

    first: Any
    second: Any
    bodies: dict[str, int]
    operands: dict[str, Any]


def repeated(sample: Sample, seed: int) -> Repeated | None:
    """A call and its repetition; None where it is refused, orders others, or values decide."""
    machine = Machine(sample.target, "auto")
    with running(machine):
        try:
            operands = sample_operands(sample, seed)
            if seed:
                scramble(operands, seed)
            arrays = [
                o.pointer.buffer.owner
                for o in operands.values()
                if isinstance(o, GlobalObject) and o.pointer is not None
            ]
            tape = Tape(arrays)
            tape.follow(machine)
            before = [(s, s.data.copy()) for s in storages(machine, operands)]
            attrs = tuple(sample.attrs[a.name] for a in sample.insn.attrs)
            machine.execute(sample.insn, tuple(operands.values()), attrs, HERE)
        except PtoError:
            return None
        if tape.reason or not (tape.words or tape.parts):
            return None
        after = contents(machine, operands)
        known = {id(s) for s, _ in before}
        for storage in storages(machine, operands):
            if id(storage) not in known:
                storage.data[:] = 0
        for storage, data in before:
            storage.data[:] = data
        replay = Replay(tape, Outcome(machine, ()), threading.Lock())
        if not replay.play(arrays):
            return None
        return Repeated(after, contents(machine, operands), replay.bodies, operands)


def without_payloads(found: Any, operands: dict[str, Any]) -> Any:
    """What was left, with one NaN for all: nobody says which of two NaNs a sum keeps."""
    cleaned: dict[str, Any] = {}
    for name, value in found.items():
        data = bytearray(value[0] if isinstance(value, tuple) else value)
        kind = getattr(getattr(operands.get(name.split()[0]), "spec", None), "dtype", None)
        if kind is not None and kind.is_float and kind.itemsize > 1:
            elements = np.frombuffer(data, kind.np)
            with np.errstate(all="ignore"):
                elements[np.isnan(elements)] = np.nan
        cleaned[name] = bytes(data)
    return cleaned


@pytest.mark.parametrize("insn", INSTRUCTIONS.values(), ids=lambda insn: insn.name)
def test_a_repetition_leaves_the_same_bytes(insn: Insn) -> None:
    for sample in of(insn):
        found = repeated(sample, 0)
        if found is not None:
            assert found.first == found.second, str(sample)


@pytest.mark.parametrize("insn", INSTRUCTIONS.values(), ids=lambda insn: insn.name)
def test_odd_values_are_treated_alike(insn: Insn) -> None:
    for sample in of(insn):
        found = repeated(sample, 1)
        if found is not None:
            first, second = (
                without_payloads(each, found.operands) for each in (found.first, found.second)
            )
            assert first == second, str(sample)


def test_the_library_has_the_instructions_that_programs_use() -> None:
    """Those of most occurrences in public programs, but for what no code can do."""
    lacking = {name for name in often() if not covered(INSTRUCTIONS[name]).compiled}
    assert lacking == set(WITHOUT)
    for name in in_examples():
        each = covered(INSTRUCTIONS[name])
        assert each.compiled or not each.calls, name


CASES = [each for each in one_target_each() if "lowered" in each.values[0].paths]


@pytest.mark.parametrize(("case", "on", "path"), CASES)
def test_the_second_launch_of_an_example_leaves_what_the_first_one_left(
    case: Any, on: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other arrays, with other contents: nothing of the first launch is left in the second.

    What it should leave on these arrays is held against the reference engine in test_programs.py.
    """
    monkeypatch.setattr(fusion, "_OFTEN", 1)  # every chain is one
    kernel = Kernel(case.kernel.source)
    left: list[Any] = []
    for engine in ("fast", "fast", "stepwise"):
        arrays = list(case.inputs(np.random.default_rng(len(left) > 0)))
        run = kernel[case.blocks](*arrays, target=on, path=path, engine=engine, **case.consts)
        assert run.path == path
        left.append([a.tobytes() for a in arrays if isinstance(a, np.ndarray)])
    assert any(found is not None for found in kernel.programs.memory.replays)
    assert left[1] == left[2]


@kernel(mode="auto")
def shifted(x, y, z):
    a, b = [Tile[TileType.Vec, int32, 16, 16]() for _ in range(2)]
    TLOAD(a, GlobalTensor(x))
    TLOAD(b, GlobalTensor(y))
    TSHL(a, a, b)
    TADDS(a, a, 1)
    TSTORE(GlobalTensor(z), a)


@kernel(mode="auto")
def summed(x, z, *, columns):
    """Sums of rows, and of what is made of them on the way."""
    a, scratch = [Tile[TileType.Vec, float32, 16, columns]() for _ in range(2)]
    b = Tile[TileType.Vec, float32, 16, 1, BLayout.ColMajor]()
    gx, gz = GlobalTensor(x), GlobalTensor(z)
    for row in range(0, x.shape[0], 16):
        TLOAD(a, gx[row : row + 16, :])
        TROWSUM(b, a, scratch)
        TSTORE(gz[row : row + 16, 0:1], b)
        TADDS(a, a, 0.25)
        TROWSUM(b, a, scratch)
        TSTORE(gz[row : row + 16, 1:2], b)


@pytest.mark.parametrize("columns", [64, 128, 192, 256, 72])
@pytest.mark.parametrize("on", ["a2a3", "a5"])
def test_sums_of_rows_have_the_order_of_the_target(on: str, columns: int) -> None:
    """Of numbers of all sizes, which tell every order from every other one, and of zeros."""
    kernel, left = Kernel(summed.source), list[bytes]()
    for engine in ("fast", "fast", "stepwise"):
        rng = np.random.default_rng(columns)
        x = rng.standard_normal((16 * 12, columns)) * 2.0 ** rng.integers(-9, 9, (16 * 12, columns))
        x[5], x[7] = -0.0, 0.0
        z = np.zeros((16 * 12, 2), np.float32)
        kernel[1](
            x.astype(np.float32), z, target=on, path="lowered", engine=engine, columns=columns
        )
        left.append(z.tobytes())
    assert left[0] == left[1] == left[2]


def test_values_that_make_a_difference_are_not_repeated() -> None:
    """A shift past the width is undefined: data without one says nothing about data with one."""
    x, y, z = (np.full((16, 16), n, np.int32) for n in (8, 2, 0))
    for _ in range(2):
        shifted[1](x, y, z, target="a5", path="lowered")
    assert (z == 33).all()
    y[3, 4] = 40
    with pytest.raises(ProgramError) as found:
        shifted[1](x, y, z, target="a5", path="lowered")
    with pytest.raises(ProgramError) as wanted:
        shifted[1](x, y, z, target="a5", path="lowered", engine="stepwise")
    assert found.value.codes == wanted.value.codes


def asked(name: str, on: str, texts: dict[str, str], seed: int = 0, **attrs: Any) -> Repeated:
    """A call that is compiled, with operands in the words of a record, and its repetition."""
    insn, target = INSTRUCTIONS[name], TARGETS[on]
    operands = {
        o.name: parse(texts[o.name], f32, target) if o.name in texts else None
        for o in insn.operands
    }
    given = {a.name: a.default for a in insn.attrs} | attrs
    found = repeated(Sample(insn, target, operands, given), seed)
    assert found is not None
    assert not found.bodies
    return found


@pytest.mark.parametrize("kind", ["f32", "f16", "u16"])
@pytest.mark.parametrize("name", ["TCOLARGMAX", "TROWARGMAX", "TCOLARGMIN"])
@pytest.mark.parametrize("seed", [0, 1])
def test_places_of_lines_that_fill_no_vector(name: str, kind: str, seed: int) -> None:
    """Ties, NaN, and columns beside whole vectors."""
    lines = "1x64 valid 1x37" if name.startswith("TCOL") else "16x1 DN valid 13x1"
    index = "i32" if kind == "f32" else "i16"
    texts = {
        "dstVal": f"Vec {kind} {lines}",
        "dstIdx": f"Vec {index} {lines}",
        "src": f"Vec {kind} 16x64 valid 13x37",
        "tmp": f"Vec {kind} 16x64",
    }
    found = asked(name, "a5", texts, seed)
    assert found.first == found.second


@pytest.mark.parametrize("scalar", ["-3", "7"])
def test_a_remainder_that_others_decide(scalar: str) -> None:
    """A2/A3 mends a column by what comes of the one in front that shares its lane."""
    tile = "Vec f32 16x192 valid 13x150"
    texts = {"dst": tile, "src": tile, "tmp": "Vec f32 1x192", "scalar": scalar}
    found = asked("TREMS", "a2a3", texts, seed=1)  # of huge numbers it lies on the wrong side
    first, second = (without_payloads(n, found.operands) for n in (found.first, found.second))
    assert first == second


@pytest.mark.parametrize("columns", [5, 37, 61])
def test_masks_that_end_inside_of_a_byte(columns: int) -> None:
    tile = f"Vec f32 16x64 valid 13x{columns}"
    texts = {"dst": tile, "src": tile, "mask": "Vec u8 16x32 valid 13x8", "scalar": "2.5"}
    found = asked("TSELS", "a5", {**texts, "tmp": "Vec u8 1x32"})
    assert found.first == found.second


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16", "i16"])
def test_stores_that_add(kind: str) -> None:
    texts = {"dst": f"GM {kind} 16x64", "src": f"Vec {kind} 16x64"}
    found = asked("TSTORE", "a5", texts, atomicType=AtomicType.AtomicAdd)
    assert found.first == found.second


@pytest.mark.parametrize("name", ["TABS", "TTRANS"])
def test_what_writes_nothing_takes_no_call(name: str) -> None:
    insn, on = INSTRUCTIONS[name], TARGETS["a2a3"]
    empty = parse("Vec f32 16x16 valid 0x0", f32, on)
    operands: dict[str, Spec | None] = dict.fromkeys((o.name for o in insn.operands), empty)
    sample = Sample(insn, on, operands, {a.name: a.default for a in insn.attrs})
    machine, tape = Machine(on, "auto"), Tape([])
    with running(machine):
        given = sample_operands(sample, 0)
        tape.follow(machine)
        machine.execute(insn, tuple(given.values()), tuple(sample.attrs.values()), HERE)
    tape.finish()
    assert not tape.words
    assert not tape.bodies


@pytest.mark.parametrize("name", ["TMATMUL", "TMATMUL_ACC"])
@pytest.mark.parametrize(("kind", "sum_"), [("f16", "f32"), ("f32", "f32"), ("i8", "i32")])
@pytest.mark.parametrize(("rows", "columns"), [(29, 37), (3, 64), (32, 80), (28, 128)])
def test_products_end_where_they_are_valid(
    name: str, kind: str, sum_: str, rows: int, columns: int
) -> None:
    """Rows, columns and depths inside of a box: what lies past them has no part in the result.

    Some have whole steps of four rows or panels, some only single ones, and some both.
    """
    insn, on = INSTRUCTIONS[name], TARGETS["a5"]
    texts = {
        "aMatrix": f"Left {kind} 32x64 valid {rows}x43",
        "bMatrix": f"Right {kind} 64x128 valid 43x{columns}",
        insn.operands[0].name: f"Acc {sum_} 32x128",
    }
    operands = {
        o.name: parse(texts[o.name], f32, on) if o.name in texts else None for o in insn.operands
    }
    found = repeated(Sample(insn, on, operands, {a.name: a.default for a in insn.attrs}), 0)
    assert found is not None
    assert not found.bodies
    assert found.first == found.second


def test_a_sum_on_the_processor_starts_from_the_accumulator_that_is_named() -> None:
    """A device adds to its result; `cpu` reads the accumulator that it is given."""
    insn, on = INSTRUCTIONS["TMATMUL_ACC"], TARGETS["cpu"]
    texts = {
        "cOutMatrix": "Acc f32 32x48",
        "cInMatrix": "Acc f32 32x48",
        "aMatrix": "Left f16 32x64",
        "bMatrix": "Right f16 64x48",
    }
    operands = {o.name: parse(texts[o.name], f32, on) for o in insn.operands}
    found = repeated(Sample(insn, on, operands, {a.name: a.default for a in insn.attrs}), 0)
    assert found is not None
    assert found.first == found.second
