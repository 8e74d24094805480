"""Vector code in C++: every operation that is emitted comes back as what it was, and by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from ptokit import loads
from ptokit.base.diagnostics import PtoError
from ptokit.base.dtypes import DType
from ptokit.isa.micro import MICRO, Micro
from ptokit.native.scopes import functions
from tests.micro.programs import run
from tests.micro.test_every_operation import COMPUTED, bits_of, program_of, sources
from tests.native.support import compiled, line_of, needs_compiler, source

pytestmark = needs_compiler


class Case:
    """An operation in a kernel, and what it is given."""

    def __init__(self, record: Micro, T: DType, U: DType) -> None:
        words = {w.name: w.choices[-1] for w in record.words if w.default is None}
        given = sources(record, T, len(record.name) + T.bits)
        self.record = record
        self.program = program_of(record, T, U, given, words)
        arrays = [v for v in given.values() if isinstance(v, np.ndarray)]
        self.arrays = [bits_of(a, T.itemsize) if a.dtype == np.bool_ else a for a in arrays]

    @property
    def out(self) -> Any:
        return np.zeros(256 * len(self.record.results), np.uint8)

    @property
    def text(self) -> str:
        text = self.program["f"].cpp(target="a5")
        return re.sub(r"\b(launch_)?f(?=\(|<<<)", rf"\1of_{self.record.name}", text)


def cases() -> dict[str, Case]:
    """Each operation that C++ has a statement for, with its first element types."""
    found: dict[str, Case] = {}
    for each in COMPUTED:
        record, T, U = cast(tuple[Micro, DType, DType], each.values)
        if record.cpp and not record.is_logical and record.name not in found:
            found[record.name] = Case(record, T, U)
    return found


CASES = cases()


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Any:
    texts = [case.text for case in CASES.values()]
    return compiled(texts, tmp_path_factory.mktemp("vector"), target="a5")


@pytest.mark.parametrize("name", CASES)
def test_an_operation_comes_back_as_what_it_was(name: str, kernels: Any) -> None:
    case = CASES[name]
    wanted, got = case.out, case.out
    run(case.program, *case.arrays, out=wanted)
    given = [each for array in (*case.arrays, got) for each in (array, array.nbytes)]
    kernels[f"of_{name}"][1](*given)
    assert wanted.any()
    assert np.array_equal(wanted, got)


def test_every_statement_has_its_function() -> None:
    named = {each.record.name for each in functions()}
    emitted = {r.name for r in MICRO.values() if r.cpp and r.is_inside and not r.is_logical}
    assert emitted - named == {"vbitcast", "pbitcast"}  # casts of the object


BY_HAND = """
extern "C" __global__ AICORE void rows(__gm__ float* out, __gm__ float* a, float s, int n)
{
    T x, z; TASSIGN(x, 0); TASSIGN(z, 0x1000);
    G ga(a), gz(out);
    TLOAD(x, ga);
    PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
    __ubuf__ float* to = z.data();
    __VEC_SCOPE__
    {
        RegTensor<float> v, w, sum;
        vdup(sum, 0.0f, pset_b32(PAT_ALL), MODE_ZEROING);
        uint32_t left = n;
        for (uint16_t i = 0; i < 16; i++) {
            MaskReg mask = CreatePredicate<float>(left);
            vlds(v, x.data(), i * 64, NORM);
            vadd(sum, sum, v, mask, MODE_MERGING);
            vmov(w, sum);
            vmuls(w, w, s, mask, MODE_ZEROING);
            vsts(w, to, 64, NORM_B32, pset_b8(PAT_ALL), POST_UPDATE);
        }
    }
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(gz, z);
}
extern "C" __global__ AICORE void blocks(__gm__ float* out, __gm__ float* a)
{
    T x[2];
    TASSIGN(x[0], 0); TASSIGN(x[1], 0x2000);
    for (int i = 0; i < 3; i++) {
        int at = (get_block_idx() * 3 + i) * 1024;
        G ga(a + at), gz(out + at);
        TLOAD(x[i % 2], ga);
        PtoSetWaitFlag<PIPE_MTE2, PIPE_V>();
        __VEC_SCOPE__
        {
            MaskReg all = pset_b32(PAT_ALL);
            for (int row = 0; row < 16; row++) {
                RegTensor<float> v;
                vlds(v, x[i % 2].data(), row * 64, NORM);
                vmuls(v, v, 2.0f, all, MODE_ZEROING);
                vsts(v, x[i % 2].data(), row * 64, NORM_B32, all);
            }
        }
        PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
        TSTORE(gz, x[i % 2]);
        PtoSetWaitFlag<PIPE_MTE3, PIPE_MTE2>();
    }
}
extern "C" __global__ AICORE void bits(__gm__ float* out)
{
    T z; TASSIGN(z, 0);
    G gz(out);
    __VEC_SCOPE__
    {
        RegTensor<int32_t> v;
        vdup(v, 0x3f800000, pset_b32(PAT_ALL), MODE_ZEROING);
        RegTensor<float> f = (RegTensor<float>&)v;
        vadds(f, f, 1.0f, pset_b32(PAT_ALL), MODE_ZEROING);
        for (int i = 0; i < 16; i++) vsts(f, z.data(), 64 * i, NORM_B32, pset_b32(PAT_ALL));
    }
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(gz, z);
}
extern "C" __global__ AICORE void again(__gm__ float* out)
{
    T z; TASSIGN(z, 0);
    __VEC_SCOPE__
    {
        RegTensor<float> v;
        vdup(v, 1.0f, pset_b32(PAT_ALL), MODE_ZEROING);
        vsts(v, z.data(), 0, NORM_B32, pset_b32(PAT_ALL));
        vlds(v, z.data(), 0, NORM);  // nothing orders it
    }
}
extern "C" __global__ AICORE void unwritten(__gm__ float* out)
{
    __VEC_SCOPE__
    {
        RegTensor<float> v, w;
        vabs(w, v, pset_b32(PAT_ALL), MODE_ZEROING);  // of nothing
    }
}
extern "C" __global__ AICORE void outside(__gm__ float* out)
{
    RegTensor<float> v;
    vdup(v, 1.0f, pset_b32(PAT_ALL), MODE_ZEROING);  // in no scope
}
extern "C" __global__ AICORE void mixed(__gm__ float* out)
{
    T z; TASSIGN(z, 0);
    __VEC_SCOPE__ { TEXPANDS(z, 1.0f); }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return source(tmp_path_factory.mktemp("scopes"), BY_HAND, target="a5")


def test_registers_masks_and_pointers_that_move(program: Any) -> None:
    x = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)
    out, n = np.zeros_like(x), 700
    program.rows[1](out, x, 2.0, n)
    wanted, sum_ = np.zeros_like(x), np.zeros(64, np.float32)
    for row in range(16):
        active = np.arange(64) + 64 * row < n
        sum_ = np.where(active, sum_ + x[row], sum_)
        wanted[row] = np.where(active, sum_ * 2, 0)
    assert np.array_equal(out, wanted)


def test_a_register_is_taken_for_one_of_another_type(program: Any) -> None:
    out = np.zeros((16, 64), np.float32)
    program.bits[1](out)
    assert (out == 2).all()


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("again", "E17", "vlds(v, z.data(), 0, NORM)"),
        ("unwritten", "scope-value", "vabs(w, v"),
        ("outside", "scope-inside", "pset_b32(PAT_ALL), MODE_ZEROING);  // in no scope"),
        ("mixed", "scope-inside", "TEXPANDS(z"),
    ],
)
def test_what_is_wrong_is_told_at_its_line(program: Any, name: str, code: str, words: str) -> None:
    with pytest.raises(PtoError) as raised:
        program[name][1](np.zeros((16, 64), np.float32))
    found = raised.value.diagnostics[0]
    assert found.code == code
    assert found.location is not None
    assert found.location.line == line_of(BY_HAND, words)


def test_other_targets_have_no_registers(tmp_path: Path) -> None:
    program = source(tmp_path, BY_HAND)
    with pytest.raises(PtoError) as raised:
        program.bits[1](np.zeros((16, 64), np.float32))
    found = raised.value.diagnostics[0].location
    assert found is not None
    assert found.line == line_of(BY_HAND, "RegTensor<int32_t> v;") - 2


def _same_as_text(kernel: Any, *given: Any, grid: int = 1) -> str:
    """The text of a launch, which does to the arrays what the launch does."""
    once, again = ([np.copy(g) if isinstance(g, np.ndarray) else g for g in given] for _ in "ab")
    text = kernel.text(*given, grid=grid)
    kernel[grid](*once)
    loads(text)[kernel.name][grid](*again)
    assert once[0].any()
    assert np.array_equal(once[0], again[0])
    return text


def test_a_scope_as_text_hands_registers_from_round_to_round(program: Any) -> None:
    x = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)
    text = _same_as_text(program.rows, np.zeros_like(x), x, 2.0, 1024)
    assert text.count("pto.vecscope") == 1
    assert text.count("pto.vlds") < 4  # a loop: 16 of them
    assert "iter_args" in text


def test_the_text_of_a_scope_is_written_as_c_again(program: Any, tmp_path: Path) -> None:
    x = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)
    once, again = np.zeros_like(x), np.zeros_like(x)
    program.rows[1](once, x, 2.0, 1024)
    text = loads(program.rows.text(once, x, 2.0, 1024))["rows"].cpp(target="a5")
    assert "vmov(v" in text  # what a round leaves to the next
    compiled([text], tmp_path, target="a5").rows[1](again, x, 2.0, 1024)
    assert np.array_equal(once, again)


def test_rounds_of_a_scope_whose_numbers_are_uneven_stand_one_by_one(program: Any) -> None:
    x = np.random.default_rng(2).standard_normal((16, 64)).astype(np.float32)
    _same_as_text(program.rows, np.zeros_like(x), x, 2.0, 700)  # masks of 60 lanes, and of none


def test_scopes_of_rounds_and_blocks_are_one(program: Any) -> None:
    x = np.random.default_rng(3).standard_normal((96, 64)).astype(np.float32)
    text = _same_as_text(program.blocks, np.zeros_like(x), x, grid=2)
    assert text.count("pto.vecscope") == 1
    assert text.count("scf.for") == 2  # over tiles, and over rows
    assert text.count("pto.vlds") == 1


def test_a_race_in_a_scope_is_found_in_its_text_too(program: Any) -> None:
    out = np.zeros((16, 64), np.float32)
    with pytest.raises(PtoError) as raised:
        loads(program.again.text(out))["again"][1](out)
    found = raised.value.diagnostics[0]
    assert found.code == "E17"
    assert found.location is not None
    assert found.location.origin is not None
    assert found.location.origin.line == line_of(BY_HAND, "vlds(v, z.data(), 0, NORM)")


@pytest.mark.parametrize("name", [name for n, name in enumerate(CASES) if n % 7 == 0])
def test_an_operation_has_its_text(name: str, kernels: Any) -> None:
    case = CASES[name]
    got = case.out
    given = [each for array in (*case.arrays, got) for each in (array, array.nbytes)]
    text = kernels[f"of_{name}"].text(*given)
    assert f"pto.{name}" in text
    again = case.out
    kernels[f"of_{name}"][1](*given)
    in_bytes = [g.view(np.uint8) if isinstance(g, np.ndarray) else g for g in given[:-2]]
    loads(text)[f"of_{name}"][1](*in_bytes, again, again.nbytes)
    assert np.array_equal(got, again)
