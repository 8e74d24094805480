"""Vector code in Python kernels: the same operations and verdicts as texts, on both paths."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.emit.cpp import emit_cpp
from ptokit.ir.printer import print_module
from ptokit.isa.micro import MICRO, Micro
from ptokit.isa.micro.samples import kinds, line, register, spelled, types
from ptokit.isa.targets import target as find_target
from ptokit.micro import *

PATHS = ("eager", "lowered")


def bring(array: Any, at: Any, nbytes: int) -> None:
    """Copy an array to the unified buffer, for the vector unit."""
    mte_gm_ub(array, at, 0, nbytes, (1, nbytes, nbytes))


def loaded() -> None:
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)


def take(at: Any, out: Any, nbytes: int) -> None:
    """Copy what the vector unit has made to an array."""
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    mte_ub_gm(at, out, nbytes, (1, nbytes, nbytes))


def launch(program: Any, path: str, *args: Any, **options: Any) -> Any:
    return program[1](*args, target="a5", path=path, **options)


def code_of(program: Any, path: str, *args: Any, **options: Any) -> set[str]:
    with pytest.raises(PtoError) as told:
        launch(program, path, *args, **options)
    return {d.code for d in told.value.diagnostics}


def ramp(count: int = 64) -> Any:
    return np.arange(count, dtype=np.float32) - 10


def scaled(x: Any, mask: Any) -> Any:
    """A helper that is handed registers."""
    return vmuls(vabs(x, mask), 2.0, mask)


@kernel
def plain(x, out, n):
    a, b = castptr(0, float32, "ub"), castptr(4096, float32, "ub")
    bring(x, a, n * 256)
    loaded()
    with vecscope():
        mask = pset_b32("PAT_ALL")
        for i in range(n):
            vsts(scaled(vlds(a, i * 64), mask), b, i * 64, mask)
    take(b, out, n * 256)


@pytest.mark.parametrize("path", PATHS)
def test_a_scope_with_a_loop_and_a_helper(path: str, engine: str) -> None:
    for seed in range(3):  # the second launch may be a repetition of the first
        x, out = ramp(256) + seed, np.zeros(256, np.float32)
        found = launch(plain, path, x, out, 4, engine=engine)
        assert (out == 2 * abs(x)).all()
        assert not found.warnings


@kernel
def streamed(x, out, n):
    a, b = castptr(0, float32, "ub"), castptr(4096, float32, "ub")
    bring(x, a, 1024)
    loaded()
    with vecscope():
        total = vbr[float32](0.0)
        whole = pset_b32("PAT_ALL")
        at, left = a, n
        for _ in range((n + 63) // 64):
            mask, left = plt_b32(left)
            v, at = vlds_post(at, 64)
            total = vadd(total, vsel(v, vbr[float32](0.0), mask), whole)
        vsts(total, b, 0, whole)
    take(b, out, 256)


@pytest.mark.parametrize("path", PATHS)
def test_registers_pointers_and_counts_are_carried_by_loops(path: str) -> None:
    x, out = ramp(256), np.zeros(64, np.float32)
    launch(streamed, path, x, out, 200)
    kept = np.where(np.arange(256) < 200, x, 0).reshape(4, 64)
    assert (out == kept.sum(axis=0)).all()


@kernel
def with_tiles(x, out):
    tile = Tile[TileType.Vec, float32, 4, 64]()
    made = Tile[TileType.Vec, float32, 4, 64]()
    TASSIGN[0](tile)
    TASSIGN[4096](made)
    TLOAD(tile, GlobalTensor(x))
    loaded()
    with vecscope():
        mask = pset_b32("PAT_ALL")
        for row in range(4):
            here = tile_buf_addr(tile) + row * 64
            vsts(vneg(vlds(here, 0), mask), tile_buf_addr(made), row * 64, mask)
    pipe_barrier(PIPE_V)
    TADD(made, made, tile)
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(out), made)


@pytest.mark.parametrize("path", PATHS)
def test_scopes_and_tile_instructions_share_memory(path: str) -> None:
    x, out = ramp(256).reshape(4, 64), np.ones((4, 64), np.float32)
    launch(with_tiles, path, x, out)
    assert (out == 0).all()


@kernel
def by_number(x, out):
    a, b = castptr(0, float32, "ub"), castptr(4096, float32, "ub")
    bring(x, a, 256)
    loaded()
    with vecscope():
        mask = pset_b32("PAT_ALL")
        factor = load_scalar(a, 3)
        vsts(vmuls(vlds(a, 0), factor, mask), b, 0, mask)
        mem_bar("VS_ALL")
        store_scalar(b, 0, 77.0)
    take(b, out, 256)


@pytest.mark.parametrize("path", PATHS)
def test_numbers_that_a_scope_loads_are_operands(path: str) -> None:
    x, out = ramp(), np.zeros(64, np.float32)
    launch(by_number, path, x, out)
    assert out[0] == 77
    assert (out[1:] == (x * x[3])[1:]).all()


@kernel
def unordered(x, out):
    a, b = castptr(0, float32, "ub"), castptr(4096, float32, "ub")
    bring(x, a, 256)
    loaded()
    with vecscope():
        mask = pset_b32("PAT_ALL")
        vsts(vlds(a, 0), b, 0, mask)
        vsts(vneg(vlds(b, 0), mask), b, 0, mask)
    take(b, out, 256)


@pytest.mark.parametrize("path", PATHS)
def test_both_paths_find_a_load_that_nothing_orders_behind_a_store(path: str) -> None:
    with pytest.raises(PtoError) as told:
        launch(unordered, path, ramp(), np.zeros(64, np.float32))
    (found,) = (d for d in told.value.diagnostics if d.code == "E17" and d.severity == "error")
    assert "load after the store" in found.message
    assert found.location is not None
    assert found.notes[0].location is not None
    lines = found.notes[0].location.text, found.location.text
    assert "vlds(a, 0)" in lines[0]
    assert "vlds(b, 0)" in lines[1]


def test_a_lowered_scope_is_text_and_back() -> None:
    x, out = ramp(256), np.zeros(64, np.float32)
    text = print_module(streamed.lower(x, out, 200, target="a5"))
    again = loads(text)
    assert str(loads(str(again))) == str(again)
    again["streamed"][1](x, out, 200, target="a5")
    wanted = np.zeros(64, np.float32)
    launch(streamed, "eager", x, wanted, 200)
    assert (out == wanted).all()


@kernel
def too_far(x, out):
    a = castptr(0, float32, "ub")
    bring(x, a, 512)
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
    mte_ub_gm(a, out, 512, (1, 512, 512))


@pytest.mark.parametrize("path", PATHS)
def test_slack_lets_a_kernel_leave_its_arrays_with_a_warning(path: str) -> None:
    x, out = ramp(), np.zeros(64, np.float32)
    assert code_of(too_far, path, x, out) == {"memory-bounds"}
    assert code_of(too_far, path, x, out, slack=255) == {"memory-bounds"}
    with pytest.warns(PtoWarning, match="memory-bounds"):
        found = launch(too_far, path, x, out, slack=256)
    assert (out == x).all()
    assert [(d.code, d.severity) for d in found.warnings] == [("memory-bounds", "warning")]
    assert not launch(plain, path, ramp(64), out, 1, slack=256).warnings


@pytest.mark.parametrize("number", [0, 1])
def test_the_programs_of_the_guide_run(tmp_path: Path, number: int) -> None:
    page = (Path(__file__).parents[2] / "docs/guide/micro.md").read_text("utf-8")
    code = page.split("```python\n")[1 + number].partition("```")[0]
    file = tmp_path / "guide.py"
    file.write_text(code)
    runpy.run_path(str(file))


# ---- C++ ---------------------------------------------------------------------------------------


def test_a_scope_is_written_as_one_of_cpp() -> None:
    text = plain.cpp(ramp(256), np.zeros(256, np.float32), 4, target="a5")
    lines = [line.strip() for line in text.splitlines()]
    start = lines.index("__VEC_SCOPE__ {")
    wanted = [
        "__ubuf__ float *a = (__ubuf__ float *)0x0;",
        "copy_gm_to_ubuf_align_v2(a, x, 0, 1, n_1, 0, 0, false, 0, n_1, n_1);",
        "MaskReg mask = pset_b32(PAT_ALL);",
        "vabs(v_1, v, mask, MODE_ZEROING);",
        "vmuls(v_2, v_1, 2.0f, mask, MODE_ZEROING);",
        "vsts(v_2, b, n_2, NORM_B32, mask);",
    ]
    assert all(each in lines[start:] for each in wanted[2:]), text
    assert all(each in lines[:start] for each in wanted[:2]), text


def test_what_cpp_has_no_statement_for_is_refused_by_name() -> None:
    for program, name in ((moving, "pto.vlds with next"), (packing, "pto.vsqz")):
        with pytest.raises(NotSupported, match=f"cannot be written for {name}"):
            program.cpp(ramp(), target="a5")


@kernel
def moving(x):
    a = castptr(0, float32, "ub")
    with vecscope():
        v, at = vlds_post(a, 64)
        vsts(v, at, 0, pset_b32("PAT_ALL"))


@kernel
def packing(x):
    a = castptr(0, float32, "ub")
    with vecscope():
        mask = pset_b32("PAT_ALL")
        vsts(vsqz(vbr[float32](1.0), mask), a, 0, mask)


STATED = [
    r for r in MICRO.values() if r.cpp and not r.cpp.startswith("&")
]  # casts are no statements


@pytest.mark.parametrize("record", STATED, ids=str)
def test_the_statement_of_every_record_names_all_that_it_takes(record: Micro) -> None:
    """An operation with its first types and words becomes a statement without a gap."""
    text = print_statement(record)
    assert record.name.removesuffix("_post")[:4] in text or "align_v2" in text
    assert not set("{}") & set(text.partition("__VEC_SCOPE__ {")[2].partition("}")[0])


def print_statement(record: Micro) -> str:
    """The C++ of a function that is handed what an operation takes."""
    T, U = next(kinds(record))
    given = types(record, T, U)
    values, lines = list[str](), list[str]()
    for slot in record.operands:
        if slot.is_optional or slot.kind in MASKS:
            continue
        many = [f"{slot.name}{n}" for n in range(3)] if slot.is_list else [slot.name]
        if slot.kind in REGISTERS:
            values.append(f"%{slot.name}_at: !pto.ptr<{spelled(T)}, ub>")
        else:
            values += [f"%{name}: {given[slot.name]}" for name in many]
    for slot in record.operands:
        if slot.kind in MASKS:
            lines.append(f'%{slot.name} = pto.pset_b8 "PAT_ALL" : {given[slot.name]}')
        elif slot.kind in REGISTERS:
            kind = given[slot.name]
            lines.append(f"%{slot.name}_l = pto.vlds %{slot.name}_at[%zero] : "
                         f"!pto.ptr<{spelled(T)}, ub> -> {register(T)}")  # fmt: skip
            lines.append(f"%{slot.name} = pto.vbitcast %{slot.name}_l : {register(T)} -> {kind}")
    if record.is_inside:
        lines = ["pto.vecscope {", *lines, line(record, given), "}"]
    else:
        lines.append(line(record, given))
    body = "\n".join(["%zero = arith.constant 0 : index", *lines, "return"])
    return emit_cpp(loads(f"func.func @f({', '.join(values)}) {{\n{body}\n}}").module, A5)


REGISTERS, MASKS = frozenset("VWXL"), frozenset("MNB")
A5 = find_target("a5")


# ---- what is refused ---------------------------------------------------------------------------


@kernel
def outside(x):
    vadd(x, x, x)


@kernel
def vector_code_by_itself(x):
    pset_b32("PAT_ALL")


@kernel
def transfer_inside(x):
    a = castptr(0, float32, "ub")
    with vecscope():
        mte_gm_ub(x, a, 0, 256, (1, 256, 256))


@kernel
def flag_inside(x):
    with vecscope():
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)


def another_scope() -> None:
    with vecscope():
        pset_b32("PAT_ALL")


@kernel
def nested(x):
    with vecscope():
        another_scope()


@kernel
def escaping(x):
    a = castptr(0, float32, "ub")
    with vecscope():
        mask = pset_b32("PAT_ALL")
    with vecscope():
        vsts(vbr[float32](1.0), a, 0, mask)


@kernel
def two_types(x):
    with vecscope():
        mask = pset_b32("PAT_ALL")
        vadd(vbr[float32](1.0), vbr[int32](1), mask)


@kernel
def narrow_mask(x):
    with vecscope():
        mask = pset_b16("PAT_ALL")
        vabs(vbr[float32](1.0), mask)


@kernel
def unknown_word(x):
    with vecscope():
        pset_b32("PAT_MOST")


@kernel
def open_type(x):
    with vecscope():
        vbr(1.0)


@kernel
def no_boxes(x):
    load_cbuf_to_ca(castptr(0, half, "l1"), castptr(0, half, "l0a"), 0, 0, 0, 1, 1, 1)


@kernel
def scales_between_blocks(x):
    mte_l1_l0a_mx(castptr(16, uint8, "l1"), castptr(0, float8_e4m3_t, "l0a"), 16, 64)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("program", "code"),
    [
        (no_boxes, "micro-type"),
        (scales_between_blocks, "vector-alignment"),
        (vector_code_by_itself, "scope-inside"),
        (transfer_inside, "scope-inside"),
        (flag_inside, "scope-inside"),
        (nested, "scope-inside"),
        (escaping, "scope-border"),
        (two_types, "micro-type"),
        (narrow_mask, "micro-type"),
        (unknown_word, "micro-word"),
        (open_type, "micro-type"),
        (outside, "micro-type"),
    ],
    ids=lambda p: getattr(p, "__name__", str(p)),
)
def test_both_paths_refuse_the_same(path: str, program: Any, code: str) -> None:
    assert code_of(program, path, ramp()) == {code}


@pytest.mark.parametrize("path", PATHS)
def test_a_device_without_such_registers_refuses_a_scope(path: str) -> None:
    with pytest.raises(PtoError) as told:
        two_types[1](ramp(), target="a2a3", path=path)
    assert "micro-target" in {d.code for d in told.value.diagnostics}
